package io.skipbridge.trino.hudi;

import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.trino.spi.block.ArrayBlockBuilder;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.MapBlockBuilder;
import io.trino.spi.block.RowBlockBuilder;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.CharType;
import io.trino.spi.type.Chars;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.Timestamps;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeUtils;
import io.trino.spi.type.VarcharType;
import io.trino.spi.type.Varchars;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.util.Utf8;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Map;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarbinaryType.VARBINARY;

/** Writes Avro's generic values to blocks of the engine's types, as its Parquet reader would return them. */
final class AvroWriter
{
    private AvroWriter() {}

    /** @throws UnsupportedSlice naming the column if its values are not of the type */
    static void write(Object value, Schema nullable, Type type, BlockBuilder builder, String column)
    {
        if (value == null) {
            builder.appendNull();
            return;
        }
        Schema schema = AvroTypes.nonNull(nullable, column);
        switch (type) {
            case ArrayType array when value instanceof Collection<?> elements -> ((ArrayBlockBuilder) builder).buildEntry(element -> {
                for (Object each : elements) {
                    write(each, schema.getElementType(), array.getElementType(), element, column);
                }
            });
            case MapType map when value instanceof Map<?, ?> entries -> ((MapBlockBuilder) builder).buildEntry((keys, values) -> {
                for (Map.Entry<?, ?> entry : entries.entrySet()) {
                    TypeUtils.writeNativeValue(map.getKeyType(), keys, text(entry.getKey(), map.getKeyType()));
                    write(entry.getValue(), schema.getValueType(), map.getValueType(), values, column);
                }
            });
            case RowType row when value instanceof IndexedRecord record -> ((RowBlockBuilder) builder).buildEntry(fields -> {
                for (int i = 0; i < row.getFields().size(); i++) {
                    RowType.Field field = row.getFields().get(i);
                    Schema.Field source = find(record.getSchema(), field.getName().orElse(""));
                    if (source == null) {
                        fields.get(i).appendNull();
                    }
                    else {
                        write(record.get(source.pos()), source.schema(), field.getType(), fields.get(i), column + "." + source.name());
                    }
                }
            });
            default -> TypeUtils.writeNativeValue(type, builder, scalar(value, schema, type, column));
        }
    }

    /** The field with this name in any case; the exact name wins. */
    static Schema.Field find(Schema schema, String lowerName)
    {
        Schema.Field exact = schema.getField(lowerName);
        if (exact != null) {
            return exact;
        }
        return schema.getFields().stream().filter(field -> AvroTypes.lower(field.name()).equals(lowerName)).findFirst().orElse(null);
    }

    private static Object scalar(Object value, Schema schema, Type type, String column)
    {
        if (type instanceof DecimalType decimal && schema.getLogicalType() instanceof LogicalTypes.Decimal stored) {
            return decimal(value, stored, decimal, column);
        }
        if (type instanceof TimestampType timestamp && timestamp.isShort() && value instanceof Long time) {
            return switch (AvroTypes.unitOf(schema)) {
                case MILLIS -> rounded(Math.multiplyExact(time, 1_000L), timestamp);
                case MICROS -> rounded(time, timestamp);
                case NONE -> throw mismatch(schema, type, column);
            };
        }
        if (AvroTypes.unitOf(schema) != AvroTypes.TimeUnit.NONE || (AvroTypes.isDate(schema.getLogicalType()) && type != DATE)) {
            throw mismatch(schema, type, column);
        }
        return switch (value) {
            case Boolean bool when type == BOOLEAN -> bool;
            case Integer number when type == INTEGER || type == BIGINT || (type == DATE && AvroTypes.isDate(schema.getLogicalType())) -> (long) number;
            case Integer number when type == SMALLINT -> narrow(number, Short.MIN_VALUE, Short.MAX_VALUE, type, column);
            case Integer number when type == TINYINT -> narrow(number, Byte.MIN_VALUE, Byte.MAX_VALUE, type, column);
            case Long number when type == BIGINT -> number;
            case Float number when type == REAL -> (long) Float.floatToRawIntBits(number);
            case Float number when type == DOUBLE -> (double) number;
            case Double number when type == DOUBLE -> number;
            case CharSequence _ when isText(type) -> text(value, type);
            case ByteBuffer bytes when type == VARBINARY -> Slices.wrappedHeapBuffer(bytes.duplicate());
            case GenericFixed fixed when type == VARBINARY -> Slices.wrappedBuffer(fixed.bytes());
            default -> {
                if (schema.getType() == Schema.Type.ENUM && isText(type)) {
                    yield text(value.toString(), type);
                }
                throw mismatch(schema, type, column);
            }
        };
    }

    private static boolean isText(Type type)
    {
        return type instanceof VarcharType || type instanceof CharType;
    }

    private static Slice text(Object value, Type type)
    {
        Slice text = value instanceof Utf8 utf8 ? Slices.wrappedBuffer(utf8.getBytes(), 0, utf8.getByteLength()) : Slices.utf8Slice(value.toString());
        return switch (type) {
            case CharType chars -> Chars.truncateToLengthAndTrimSpaces(text, chars);
            case VarcharType varchar -> Varchars.truncateToLength(text, varchar);
            default -> text;
        };
    }

    private static long rounded(long micros, TimestampType type)
    {
        return Timestamps.round(micros, 6 - type.getPrecision());
    }

    private static long narrow(int number, int min, int max, Type type, String column)
    {
        if (number < min || number > max) {
            throw new UnsupportedSlice("column %s holds %d, which is no %s. Mend the table's column type".formatted(column, number, type.getDisplayName()));
        }
        return number;
    }

    private static Object decimal(Object value, LogicalTypes.Decimal stored, DecimalType type, String column)
    {
        BigInteger unscaled = switch (value) {
            case GenericFixed fixed -> new BigInteger(fixed.bytes());
            case ByteBuffer bytes -> {
                byte[] copy = new byte[bytes.remaining()];
                bytes.duplicate().get(copy);
                yield new BigInteger(copy);
            }
            case BigDecimal decimal -> decimal.setScale(stored.getScale(), RoundingMode.UNNECESSARY).unscaledValue();
            default -> throw new UnsupportedSlice("column %s holds a %s where a decimal was expected. Read the table once it is compacted, or with Spark".formatted(column, value.getClass().getSimpleName()));
        };
        BigDecimal exact = new BigDecimal(unscaled, stored.getScale()).setScale(type.getScale(), RoundingMode.HALF_UP);
        if (exact.precision() > type.getPrecision()) {
            throw new UnsupportedSlice("column %s holds %s, which is no %s. Mend the table's column type".formatted(column, exact, type.getDisplayName()));
        }
        return type.isShort() ? (Object) exact.unscaledValue().longValueExact() : Int128.valueOf(exact.unscaledValue());
    }

    private static UnsupportedSlice mismatch(Schema schema, Type type, String column)
    {
        return new UnsupportedSlice("column %s has the Avro type %s in a log and the type %s in the table. Mend the table's column type".formatted(column, schema, type.getDisplayName()));
    }
}
