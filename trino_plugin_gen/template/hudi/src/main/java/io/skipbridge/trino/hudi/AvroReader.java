package io.skipbridge.trino.hudi;

import io.airlift.slice.Slice;
import io.trino.spi.block.Block;
import io.trino.spi.block.SqlMap;
import io.trino.spi.block.SqlRow;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import org.apache.avro.Conversions;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.util.Utf8;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;

/** Values of blocks as Avro's generic values. A block is of the type that {@link AvroTypes} gives for the schema. */
final class AvroReader
{
    private static final Conversions.DecimalConversion DECIMAL = new Conversions.DecimalConversion();

    private AvroReader() {}

    static Object read(Schema nullable, Type type, Block block, int position)
    {
        if (block.isNull(position)) {
            return null;
        }
        Schema schema = AvroTypes.nonNull(nullable, nullable.getName());
        if (schema.getLogicalType() instanceof LogicalTypes.Decimal decimal) {
            BigDecimal value = decimal((DecimalType) type, block, position);
            return schema.getType() == Schema.Type.FIXED ? DECIMAL.toFixed(value, schema, decimal) : DECIMAL.toBytes(value, schema, decimal);
        }
        return switch (schema.getType()) {
            case BOOLEAN -> BOOLEAN.getBoolean(block, position);
            case INT -> type == INTEGER ? (Object) INTEGER.getInt(block, position) : (Object) (int) type.getLong(block, position);
            case LONG -> switch (AvroTypes.unitOf(schema)) {
                case NONE -> BIGINT.getLong(block, position);
                case MICROS -> type.getLong(block, position);
                case MILLIS -> Math.floorDiv(type.getLong(block, position), 1_000L);
            };
            case FLOAT -> REAL.getFloat(block, position);
            case DOUBLE -> DOUBLE.getDouble(block, position);
            case STRING -> new Utf8(type.getSlice(block, position).getBytes());
            case ENUM -> new GenericData.EnumSymbol(schema, type.getSlice(block, position).toStringUtf8());
            case BYTES -> ByteBuffer.wrap(type.getSlice(block, position).getBytes());
            case FIXED -> fixed(schema, type.getSlice(block, position));
            case ARRAY -> array(schema, (ArrayType) type, block, position);
            case MAP -> map(schema, (MapType) type, block, position);
            case RECORD -> record(schema, (RowType) type, block, position);
            default -> throw AvroTypes.unsupported(nullable, nullable.getName());
        };
    }

    private static GenericData.Fixed fixed(Schema schema, Slice slice)
    {
        return new GenericData.Fixed(schema, slice.getBytes());
    }

    private static BigDecimal decimal(DecimalType type, Block block, int position)
    {
        BigInteger unscaled = type.isShort()
                ? BigInteger.valueOf(type.getLong(block, position))
                : ((Int128) type.getObject(block, position)).toBigInteger();
        return new BigDecimal(unscaled, type.getScale());
    }

    private static Object array(Schema schema, ArrayType type, Block block, int position)
    {
        Block elements = type.getObject(block, position);
        GenericData.Array<Object> array = new GenericData.Array<>(elements.getPositionCount(), schema);
        for (int i = 0; i < elements.getPositionCount(); i++) {
            array.add(read(schema.getElementType(), type.getElementType(), elements, i));
        }
        return array;
    }

    private static Object map(Schema schema, MapType type, Block block, int position)
    {
        SqlMap entries = type.getObject(block, position);
        Map<Utf8, Object> map = new HashMap<>();
        for (int i = 0; i < entries.getSize(); i++) {
            Slice key = type.getKeyType().getSlice(entries.getRawKeyBlock(), entries.getRawOffset() + i);
            map.put(new Utf8(key.getBytes()), read(schema.getValueType(), type.getValueType(), entries.getRawValueBlock(), entries.getRawOffset() + i));
        }
        return map;
    }

    private static Object record(Schema schema, RowType type, Block block, int position)
    {
        SqlRow row = type.getObject(block, position);
        GenericData.Record record = new GenericData.Record(schema);
        for (int i = 0; i < schema.getFields().size(); i++) {
            record.put(i, read(schema.getFields().get(i).schema(), type.getFields().get(i).getType(), row.getRawFieldBlock(i), row.getRawIndex()));
        }
        return record;
    }
}
