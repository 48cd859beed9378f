package io.skipbridge.trino.read.footer;

import io.airlift.slice.Slices;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.BigintType;
import io.trino.spi.type.BooleanType;
import io.trino.spi.type.CharType;
import io.trino.spi.type.DateType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Decimals;
import io.trino.spi.type.DoubleType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.IntegerType;
import io.trino.spi.type.LongTimestamp;
import io.trino.spi.type.RealType;
import io.trino.spi.type.SmallintType;
import io.trino.spi.type.TimeType;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.TimestampWithTimeZoneType;
import io.trino.spi.type.TinyintType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarbinaryType;
import io.trino.spi.type.VarcharType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DateLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.Float16LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.IntLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Optional;
import java.util.function.UnaryOperator;

import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.TimestampType.TIMESTAMP_NANOS;

/**
 * The pairs of a file's type and a table's type that are read. Trino's reader decodes some pairs without a check: integers as the bits of a float, numbers
 * without a sign as negative ones, decimals as days. So a pair is read by it only if it stands here; of others, integers and decimals are converted, and
 * what has one text in Hive and Trino is converted to text.
 *
 * <p>An integer under a floating-point type is cast as Java casts, which may round. A timestamp is cut to the length of its text. Every other conversion
 * is exact, and a value that does not fit is an error.
 *
 * @param type in which the reader is asked for the values
 * @param conversion from it to the table's type; empty if it is the table's
 */
record ReadLeaf(Type type, Optional<UnaryOperator<Block>> conversion)
{
    /** Of any integer of 32 bits. Trino's reader also gives numbers that are too large for a decimal of fewer. */
    private static final int DIGITS = 10;
    private static final LocalDate FIRST_DAY = LocalDate.of(1900, 1, 1);

    private interface Value<T>
    {
        T of(Block block, int position);
    }

    private interface Writer
    {
        void write(Block block, int position, BlockBuilder into);
    }

    /** Empty if the pair is not read. */
    static Optional<ReadLeaf> of(String column, PrimitiveType stored, Type table)
    {
        if (decodes(stored, table)) {
            return Optional.of(new ReadLeaf(table, Optional.empty()));
        }
        LogicalTypeAnnotation annotation = stored.getLogicalTypeAnnotation();
        if (annotation instanceof DecimalLogicalTypeAnnotation decimal) {
            boolean toFloat = table instanceof RealType && isWhole(decimal);
            DecimalType read = DecimalType.createDecimalType(decimal.getPrecision(), decimal.getScale());
            return toFloat || table instanceof VarcharType || table instanceof DecimalType ? Optional.of(ofNumbers(column, read, (block, at) -> Decimals.readBigDecimal(read, block, at), table)) : Optional.empty();
        }
        if (!isInteger(stored)) {
            return table instanceof VarcharType text ? ofTexts(column, stored, text) : Optional.empty();
        }
        boolean isWide = stored.getPrimitiveTypeName() == PrimitiveTypeName.INT64;
        if (!isNumber(table) && !(table instanceof VarcharType)) {
            return Optional.empty();
        }
        Type read = isWide ? BIGINT : INTEGER;
        Value<BigDecimal> signed = (block, at) -> BigDecimal.valueOf(read.getLong(block, at));
        Value<BigDecimal> unsigned = isWide
                ? (block, at) -> new BigDecimal(new BigInteger(Long.toUnsignedString(BIGINT.getLong(block, at))))
                : (block, at) -> BigDecimal.valueOf(Integer.toUnsignedLong(INTEGER.getInt(block, at)));
        return Optional.of(ofNumbers(column, read, isSigned(annotation) ? signed : unsigned, table));
    }

    static String refusal(String column, PrimitiveType stored, Type table)
    {
        return "column '%s' is %s in Parquet, which is not read as %s. Declare the column as the file has it, or rewrite the file".formatted(column, stored, table.getDisplayName());
    }

    /** Whether Trino's reader gives the very values of the file, or an error. */
    private static boolean decodes(PrimitiveType stored, Type table)
    {
        LogicalTypeAnnotation annotation = stored.getLogicalTypeAnnotation();
        if (annotation instanceof DecimalLogicalTypeAnnotation decimal) {
            return (table instanceof DecimalType type && !wraps(decimal, type)) || (isWhole(decimal) && isInteger(table));
        }
        return switch (stored.getPrimitiveTypeName()) {
            case BOOLEAN -> table instanceof BooleanType;
            case INT32 -> switch (table) {
                case TinyintType _, SmallintType _, IntegerType _, BigintType _ -> bits(stored) <= Math.min(Integer.SIZE, bitsOf(table));
                case DecimalType decimal -> isInteger(stored) && bits(stored) <= Integer.SIZE && decimal.isShort() && decimal.getPrecision() - decimal.getScale() >= DIGITS;
                case DateType _ -> annotation instanceof DateLogicalTypeAnnotation || bits(stored) <= Integer.SIZE;
                default -> false;
            };
            case INT64 -> switch (table) {
                case BigintType _ -> bits(stored) <= Long.SIZE || annotation instanceof TimestampLogicalTypeAnnotation || annotation instanceof TimeLogicalTypeAnnotation;
                case TimestampType _, TimestampWithTimeZoneType _ -> annotation instanceof TimestampLogicalTypeAnnotation;
                case TimeType _ -> annotation instanceof TimeLogicalTypeAnnotation;
                default -> false;
            };
            case INT96 -> table instanceof TimestampType || table instanceof TimestampWithTimeZoneType;
            case FLOAT -> table instanceof RealType || table instanceof DoubleType;
            case DOUBLE -> table instanceof DoubleType;
            case BINARY -> table instanceof VarcharType || table instanceof CharType || table instanceof VarbinaryType;
            case FIXED_LEN_BYTE_ARRAY -> table instanceof VarbinaryType || (table instanceof VarcharType text && text.isUnbounded() && !(annotation instanceof Float16LogicalTypeAnnotation));
        };
    }

    /** Whether Trino's reader multiplies numbers by a power of ten without a look at the 64 bits that they have. */
    private static boolean wraps(DecimalLogicalTypeAnnotation stored, DecimalType table)
    {
        return table.isShort() && stored.getPrecision() <= Decimals.MAX_SHORT_PRECISION && stored.getPrecision() + table.getScale() - stored.getScale() > Decimals.MAX_SHORT_PRECISION;
    }

    private static boolean isInteger(PrimitiveType stored)
    {
        LogicalTypeAnnotation annotation = stored.getLogicalTypeAnnotation();
        return (stored.getPrimitiveTypeName() == PrimitiveTypeName.INT32 || stored.getPrimitiveTypeName() == PrimitiveTypeName.INT64)
                && (annotation == null || annotation instanceof IntLogicalTypeAnnotation);
    }

    /** Of a signed type that has all values; more than any if it is no integer. */
    private static int bits(PrimitiveType stored)
    {
        if (!isInteger(stored)) {
            return Integer.MAX_VALUE;
        }
        int width = stored.getPrimitiveTypeName() == PrimitiveTypeName.INT32 ? Integer.SIZE : Long.SIZE;
        return stored.getLogicalTypeAnnotation() instanceof IntLogicalTypeAnnotation integer
                ? integer.getBitWidth() + (integer.isSigned() ? 0 : 1)
                : width;
    }

    private static int bitsOf(Type table)
    {
        return switch (table) {
            case TinyintType _ -> Byte.SIZE;
            case SmallintType _ -> Short.SIZE;
            case IntegerType _ -> Integer.SIZE;
            default -> Long.SIZE;
        };
    }

    private static boolean isSigned(LogicalTypeAnnotation annotation)
    {
        return !(annotation instanceof IntLogicalTypeAnnotation integer) || integer.isSigned();
    }

    /** Whether Trino's reader takes a decimal for an integer. */
    private static boolean isWhole(DecimalLogicalTypeAnnotation decimal)
    {
        return decimal.getScale() == 0 && decimal.getPrecision() <= Decimals.MAX_SHORT_PRECISION;
    }

    private static boolean isInteger(Type table)
    {
        return table instanceof TinyintType || table instanceof SmallintType || table instanceof IntegerType || table instanceof BigintType;
    }

    private static boolean isNumber(Type table)
    {
        return isInteger(table) || table instanceof RealType || table instanceof DoubleType || table instanceof DecimalType;
    }

    private static ReadLeaf ofNumbers(String column, Type read, Value<BigDecimal> value, Type table)
    {
        return converted(read, table, (block, at, into) -> write(column, value.of(block, at), table, into));
    }

    /** What Trino's hive connector converts to text, in its words. */
    private static Optional<ReadLeaf> ofTexts(String column, PrimitiveType stored, VarcharType table)
    {
        LogicalTypeAnnotation annotation = stored.getLogicalTypeAnnotation();
        return switch (stored.getPrimitiveTypeName()) {
            case BOOLEAN -> Optional.of(converted(BOOLEAN, table, (block, at, into) -> writeText(column, BOOLEAN.getBoolean(block, at) ? "TRUE" : "FALSE", table, into)));
            case FLOAT -> Optional.of(converted(REAL, table, (block, at, into) -> writeText(column, Float.toString(REAL.getFloat(block, at)), table, into)));
            case DOUBLE -> Optional.of(converted(DOUBLE, table, (block, at, into) -> writeText(column, Double.toString(DOUBLE.getDouble(block, at)), table, into)));
            case INT32 -> annotation instanceof DateLogicalTypeAnnotation
                    ? Optional.of(converted(DATE, table, (block, at, into) -> writeText(column, modern(column, LocalDate.ofEpochDay(DATE.getInt(block, at))).toString(), table, into)))
                    : Optional.empty();
            case INT64 -> annotation instanceof TimestampLogicalTypeAnnotation ? Optional.of(ofTimes(column, table)) : Optional.empty();
            case INT96 -> Optional.of(ofTimes(column, table));
            default -> Optional.empty();
        };
    }

    private static ReadLeaf ofTimes(String column, VarcharType table)
    {
        return converted(TIMESTAMP_NANOS, table, (block, at, into) -> {
            LongTimestamp value = (LongTimestamp) TIMESTAMP_NANOS.getObject(block, at);
            long micros = value.getEpochMicros();
            int nanos = Math.floorMod(micros, 1_000_000) * 1000 + value.getPicosOfMicro() / 1000;
            LocalDateTime time = LocalDateTime.ofEpochSecond(Math.floorDiv(micros, 1_000_000), nanos, ZoneOffset.UTC);
            String text = modern(column, time.toLocalDate()) + " " + DateTimeFormatter.ISO_LOCAL_TIME.format(time);
            writeText(column, table.isUnbounded() ? text : text.substring(0, Math.min(text.length(), table.getBoundedLength())), table, into);
        });
    }

    /** A day whose text does not depend on the calendar of the writer. */
    private static LocalDate modern(String column, LocalDate day)
    {
        if (day.isBefore(FIRST_DAY)) {
            throw new TrinoException(
                    NOT_SUPPORTED,
                    "column '%s' holds the day %s, and days before %s are not read as text, since writers differ in calendar. Declare the column as the file has it".formatted(column, day, FIRST_DAY));
        }
        return day;
    }

    private static ReadLeaf converted(Type read, Type table, Writer writer)
    {
        return new ReadLeaf(read, Optional.of(block -> {
            BlockBuilder into = table.createBlockBuilder(null, block.getPositionCount());
            for (int i = 0; i < block.getPositionCount(); i++) {
                if (block.isNull(i)) {
                    into.appendNull();
                }
                else {
                    writer.write(block, i, into);
                }
            }
            return into.build();
        }));
    }

    private static void writeText(String column, String value, VarcharType table, BlockBuilder into)
    {
        if (!table.isUnbounded() && value.length() > table.getBoundedLength()) {
            throw misfit(column, value, table, null);
        }
        table.writeSlice(into, Slices.utf8Slice(value));
    }

    private static void write(String column, BigDecimal value, Type table, BlockBuilder into)
    {
        try {
            switch (table) {
                case RealType real -> real.writeFloat(into, value.floatValue());
                case DoubleType wide -> wide.writeDouble(into, value.doubleValue());
                case DecimalType decimal -> {
                    BigInteger unscaled = value.setScale(decimal.getScale()).unscaledValue();
                    if (Decimals.overflows(unscaled, decimal.getPrecision())) {
                        throw new ArithmeticException("too large");
                    }
                    if (decimal.isShort()) {
                        decimal.writeLong(into, unscaled.longValueExact());
                    }
                    else {
                        decimal.writeObject(into, Int128.valueOf(unscaled));
                    }
                }
                case VarcharType text -> writeText(column, value.toPlainString(), text, into);
                default -> {
                    long number = value.longValueExact();
                    int spare = Long.SIZE - bitsOf(table);
                    if (number << spare >> spare != number) {
                        throw new ArithmeticException("too large");
                    }
                    table.writeLong(into, number);
                }
            }
        }
        catch (ArithmeticException e) {
            throw misfit(column, value, table, e);
        }
    }

    private static TrinoException misfit(String column, Object value, Type table, ArithmeticException cause)
    {
        return new TrinoException(NOT_SUPPORTED, "column '%s' holds %s, which is no %s. Declare a wider type, or rewrite the file".formatted(column, value, table.getDisplayName()), cause);
    }
}
