package io.skipbridge.trino.read.hudi;

import io.airlift.slice.Slices;
import io.skipbridge.trino.read.block.NestedBlocks;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.RowBlock;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Decimals;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import org.junit.jupiter.api.Test;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestFileValues
{
    private static final DecimalType PRICE = DecimalType.createDecimalType(20, 4);

    private static Map<String, Optional<FileColumn>> told(String json)
    {
        return FileColumn.of(new ReaderSpec("hudi_by_id", Map.of("skipbridge.hudi.columns", json), Optional.empty()));
    }

    private static Block numbers(Type type, Long... values)
    {
        BlockBuilder into = type.createBlockBuilder(null, values.length);
        for (Long value : values) {
            if (value == null) {
                into.appendNull();
            }
            else {
                type.writeLong(into, value);
            }
        }
        return into.build();
    }

    @Test
    void columnsThatAreNotToldAreFoundByName()
    {
        Map<String, Optional<FileColumn>> columns = told("{\"title\": {\"name\": \"name\"}, \"gone\": null}");
        assertEquals("name", FileColumn.find(columns, "title").orElseThrow().name());
        assertTrue(FileColumn.find(columns, "title").orElseThrow().sameValues());
        assertTrue(FileColumn.find(columns, "gone").isEmpty());
        assertEquals("id", FileColumn.find(columns, "ID").orElseThrow().name());
    }

    @Test
    void changedTypes()
    {
        Map<String, Optional<FileColumn>> columns = told("{\"a\": {\"name\": \"a\", \"was\": \"int\"}, \"d\": {\"name\": \"d\", \"was\": \"double\"}, \"t\": {\"name\": \"t\", \"was\": \"date\"}}");
        FileColumn integer = columns.get("a").orElseThrow();
        assertEquals(INTEGER, integer.typeIn(VARCHAR));
        Block texts = FileValues.to(integer, VARCHAR).apply(numbers(INTEGER, -7L, null));
        assertEquals(Slices.utf8Slice("-7"), VARCHAR.getSlice(texts, 0));
        assertTrue(texts.isNull(1));
        assertEquals(new BigDecimal("5.0000"), Decimals.readBigDecimal(PRICE, FileValues.to(integer, PRICE).apply(numbers(INTEGER, 5L)), 0));
        Block cast = FileValues.to(integer, REAL).apply(numbers(INTEGER, 16_777_217L, null));
        assertEquals(16_777_216.0f, REAL.getFloat(cast, 0));
        assertTrue(cast.isNull(1));
        assertThrows(TrinoException.class, () -> FileValues.to(integer, DATE));

        BlockBuilder doubles = DOUBLE.createBlockBuilder(null, 1);
        DOUBLE.writeDouble(doubles, -123456.78905);
        FileColumn wide = columns.get("d").orElseThrow();
        assertEquals(new BigDecimal("-123456.7891"), Decimals.readBigDecimal(PRICE, FileValues.to(wide, PRICE).apply(doubles.build()), 0));

        Block dates = FileValues.to(columns.get("t").orElseThrow(), VARCHAR).apply(numbers(DATE, -1L));
        assertEquals(Slices.utf8Slice("1969-12-31"), VARCHAR.getSlice(dates, 0));
    }

    @Test
    void fieldsOfRows()
    {
        RowType table = RowType.from(List.of(RowType.field("new", BIGINT), RowType.field("x", VARCHAR), RowType.field("y", INTEGER)));
        FileColumn point = told("{\"p\": {\"name\": \"p\", \"parts\": {\"new\": {\"name\": \"x\", \"was\": \"int\"}, \"x\": null}}}").get("p").orElseThrow();
        assertEquals(RowType.from(List.of(RowType.field("x", INTEGER), RowType.field("y", INTEGER))), point.typeIn(table));

        Block rows = NestedBlocks.rows(new boolean[] {false, true}, new Block[] {numbers(INTEGER, 1L, null), numbers(INTEGER, 2L, null)});
        Block read = FileValues.to(point, table).apply(rows);
        assertTrue(read.isNull(1));
        List<Block> fields = RowBlock.getRowFieldsFromBlock(read);
        assertEquals(1, BIGINT.getLong(fields.get(0), 0));
        assertTrue(fields.get(1).isNull(0));
        assertEquals(2, INTEGER.getInt(fields.get(2), 0));
    }
}
