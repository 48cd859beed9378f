package io.skipbridge.trino.hudi;

import io.airlift.slice.Slice;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.Int128;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeUtils;
import org.apache.avro.Conversions;
import org.apache.avro.LogicalType;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.util.Utf8;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DecimalType.createDecimalType;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MILLIS;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static io.trino.spi.type.VarcharType.createVarcharType;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Values between Avro and blocks, in both directions. */
class TestAvroValues
{
    private static final Schema INT = Schema.create(Schema.Type.INT);
    private static final Schema LONG = Schema.create(Schema.Type.LONG);
    private static final Schema STRING = Schema.create(Schema.Type.STRING);
    private static final Schema BYTES = Schema.create(Schema.Type.BYTES);
    private static final Schema ROW = SchemaBuilder.record("inner").fields().optionalInt("X").optionalString("y").endRecord();

    @Test
    void everyTypeSurvivesBothWays()
    {
        GenericData.Record row = new GenericData.Record(ROW);
        row.put("X", 7);
        row.put("y", new Utf8("seven"));
        Schema numbers = Schema.createArray(nullable(INT));
        Schema names = Schema.createMap(nullable(LONG));
        Schema fixed = Schema.createFixed("f", null, null, 3);
        Schema letter = Schema.createEnum("letter", null, null, List.of("A", "B"));

        survives(true, Schema.create(Schema.Type.BOOLEAN));
        survives(-5, INT);
        survives(1L << 40, LONG);
        survives(0.1f, Schema.create(Schema.Type.FLOAT));
        survives(-0.0, Schema.create(Schema.Type.DOUBLE));
        survives(new Utf8("ä😀"), STRING);
        survives(ByteBuffer.wrap(new byte[] {0, -1}), BYTES);
        survives(new GenericData.Fixed(fixed, new byte[] {1, 2, 3}), fixed);
        survives(new GenericData.EnumSymbol(letter, "B"), letter);
        survives(-1, logical(LogicalTypes.date(), INT));
        survives(-1L, logical(LogicalTypes.timestampMillis(), LONG));
        survives(-1L, logical(LogicalTypes.timestampMicros(), LONG));
        survives(1_500L, logical(LogicalTypes.localTimestampMillis(), LONG));
        survives(1_500L, logical(LogicalTypes.localTimestampMicros(), LONG));
        survives(row, ROW);
        survives(new GenericData.Array<>(numbers, Arrays.asList(1, null, 3)), numbers);
        survives(Map.of(new Utf8("k"), 1L), names);
        for (int precision : new int[] {9, 18, 19, 38}) {
            LogicalTypes.Decimal decimal = LogicalTypes.decimal(precision, 2);
            Schema ofFixed = decimal.addToSchema(Schema.createFixed("d", null, null, 16));
            Schema ofBytes = decimal.addToSchema(Schema.create(Schema.Type.BYTES));
            survives(new Conversions.DecimalConversion().toFixed(new BigDecimal("-12345.67"), ofFixed, decimal), ofFixed);
            survives(new Conversions.DecimalConversion().toBytes(new BigDecimal("-12345.67"), ofBytes, decimal), ofBytes);
        }
    }

    @Test
    void valuesAreWrittenInTheTypeOfTheTablesColumn()
    {
        assertEquals(5L, written(5, INT, BIGINT));
        assertEquals(5L, written(5, INT, SMALLINT));
        assertEquals(0.5, written(0.5f, Schema.create(Schema.Type.FLOAT), DOUBLE));
        assertEquals(1_235_000L, written(1_234_567L, logical(LogicalTypes.timestampMicros(), LONG), TIMESTAMP_MILLIS));
        assertEquals(5_000L, written(5L, logical(LogicalTypes.timestampMillis(), LONG), TIMESTAMP_MICROS));
        Schema decimal = LogicalTypes.decimal(4, 1).addToSchema(Schema.create(Schema.Type.BYTES));
        assertEquals(Int128.valueOf(1_250), written(ByteBuffer.wrap(new byte[] {125}), decimal, createDecimalType(20, 2)));
        assertEquals("ab", ((Slice) written(new Utf8("abc"), STRING, createVarcharType(2))).toStringUtf8());
    }

    @Test
    void aTypeThatDoesNotFitIsAnError()
    {
        refuses(1L, LONG, INTEGER);
        refuses(70_000, INT, SMALLINT);
        refuses(1L, LONG, TIMESTAMP_MICROS);
        refuses(1L, logical(LogicalTypes.timestampMicros(), LONG), BIGINT);
        refuses(1, logical(LogicalTypes.date(), INT), INTEGER);
        refuses(1, INT, DATE);
        refuses(1, INT, BOOLEAN);
        refuses(1.5, Schema.create(Schema.Type.DOUBLE), REAL);
        refuses(new Utf8("x"), STRING, BIGINT);
        assertThrows(UnsupportedSlice.class, () -> AvroTypes.typeOf(Schema.createUnion(INT, STRING), "c"));
        assertThrows(UnsupportedSlice.class, () -> AvroTypes.typeOf(logical(LogicalTypes.timeMillis(), INT), "c"));
    }

    @Test
    void namesOfNestedFieldsMatchInAnyCase()
    {
        assertEquals(RowType.rowType(RowType.field("x", INTEGER), RowType.field("y", VARCHAR)), AvroTypes.typeOf(ROW, "c"));
    }

    @Test
    void rowsOfAnOlderSchemaGetTheTables()
            throws IOException
    {
        SchemaBuilder.FieldAssembler<Schema> meta = SchemaBuilder.record("t_record").namespace("hoodie.t").fields();
        for (String name : List.of("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")) {
            meta = meta.optionalString(name);
        }
        Schema table = meta.optionalLong("ts").optionalLong("n").optionalDouble("d").optionalString("added").endRecord();
        String older = table.toString()
                .replace("{\"name\":\"n\",\"type\":[\"null\",\"long\"]", "{\"name\":\"n\",\"type\":[\"null\",\"int\"]")
                .replace("\"double\"", "\"float\"")
                .replace(",{\"name\":\"added\",\"type\":[\"null\",\"string\"],\"default\":null}", "");
        byte[] log = new LogWriter(new Schema.Parser().parse(older)).rows("001", new Object[] {"001", "1", "a", "p", "f", 1L, 5, 0.5f}).bytes();
        List<SliceRequest.Column> columns = List.of(new SliceRequest.Column("n", BIGINT), new SliceRequest.Column("d", DOUBLE), new SliceRequest.Column("added", VARCHAR));
        List<List<Object>> rows = new SliceOfArrays(table, "EVENT_TIME_ORDERING").log(log).rows(new HudiSliceMerger(), columns);
        assertEquals(List.of(Arrays.asList(5L, 0.5, null)), rows);
    }

    private static void survives(Object value, Schema schema)
    {
        Type type = AvroTypes.typeOf(nullable(schema), "c");
        Block block = block(value, nullable(schema), type);
        assertEquals(value, AvroReader.read(nullable(schema), type, block, 0));
        assertTrue(block(null, nullable(schema), type).isNull(0));
    }

    private static Object written(Object value, Schema schema, Type type)
    {
        return TypeUtils.readNativeValue(type, block(value, schema, type), 0);
    }

    private static void refuses(Object value, Schema schema, Type type)
    {
        assertTrue(assertThrows(UnsupportedSlice.class, () -> written(value, schema, type)).getMessage().contains("column c"));
    }

    private static Block block(Object value, Schema schema, Type type)
    {
        BlockBuilder builder = type.createBlockBuilder(null, 1);
        AvroWriter.write(value, schema, type, builder, "c");
        return builder.build();
    }

    private static Schema nullable(Schema schema)
    {
        return Schema.createUnion(Schema.create(Schema.Type.NULL), schema);
    }

    private static Schema logical(LogicalType logical, Schema schema)
    {
        return logical.addToSchema(Schema.create(schema.getType()));
    }
}
