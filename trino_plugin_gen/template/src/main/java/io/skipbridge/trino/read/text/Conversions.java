package io.skipbridge.trino.read.text;

import io.airlift.slice.Slice;
import io.airlift.slice.SliceUtf8;
import io.airlift.slice.Slices;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.BigintType;
import io.trino.spi.type.BooleanType;
import io.trino.spi.type.CharType;
import io.trino.spi.type.Chars;
import io.trino.spi.type.DateType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.DoubleType;
import io.trino.spi.type.IntegerType;
import io.trino.spi.type.RealType;
import io.trino.spi.type.SmallintType;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.TinyintType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarbinaryType;
import io.trino.spi.type.VarcharType;
import io.trino.spi.type.Varchars;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import static io.trino.spi.StandardErrorCode.INVALID_ARGUMENTS;
import static io.trino.spi.StandardErrorCode.INVALID_CAST_ARGUMENT;

/** Conversions of values from the type that a partition declares to the type of the table, as Trino's hive connector does them. */
final class Conversions
{
    private static final Pattern PARAMETERS = Pattern.compile("(\\w+)\\((\\d+)(?:, *(\\d+))?\\)");
    private static final List<Type> INTEGERS = List.of(TinyintType.TINYINT, SmallintType.SMALLINT, IntegerType.INTEGER, BigintType.BIGINT);
    private static final Set<String> FALSE = Set.of("false", "off", "no", "0", "");
    private static final long EXACT_IN_DOUBLE = 1L << 52;

    private Conversions() {}

    /** Whether the planner's spelling is that of this type. */
    static boolean spelledAlike(String engineType, Type type)
    {
        return plain(engineType).equals(plain(type.getDisplayName()));
    }

    private static String plain(String type)
    {
        return type.replace("\"", "").replace(", ", ",").toLowerCase(Locale.ENGLISH);
    }

    /** A type without others in it, from its name in SQL. */
    static Optional<Type> scalar(String name)
    {
        Matcher parameters = PARAMETERS.matcher(name);
        if (parameters.matches()) {
            int first = Integer.parseInt(parameters.group(2));
            return switch (parameters.group(1)) {
                case "varchar" -> Optional.of(VarcharType.createVarcharType(first));
                case "char" -> Optional.of(CharType.createCharType(first));
                case "timestamp" -> Optional.of(TimestampType.createTimestampType(first));
                case "decimal" -> Optional.of(DecimalType.createDecimalType(first, parameters.group(3) == null ? 0 : Integer.parseInt(parameters.group(3))));
                default -> Optional.empty();
            };
        }
        return switch (name) {
            case "boolean" -> Optional.of(BooleanType.BOOLEAN);
            case "tinyint" -> Optional.of(TinyintType.TINYINT);
            case "smallint" -> Optional.of(SmallintType.SMALLINT);
            case "integer" -> Optional.of(IntegerType.INTEGER);
            case "bigint" -> Optional.of(BigintType.BIGINT);
            case "real" -> Optional.of(RealType.REAL);
            case "double" -> Optional.of(DoubleType.DOUBLE);
            case "date" -> Optional.of(DateType.DATE);
            case "varchar" -> Optional.of(VarcharType.VARCHAR);
            case "varbinary" -> Optional.of(VarbinaryType.VARBINARY);
            default -> Optional.empty();
        };
    }

    /** The conversion; empty if values stay as they are. */
    static Optional<UnaryOperator<Block>> of(Type from, Type to, Supplier<TrinoException> unknown)
    {
        if (from.equals(to) || keepsText(from, to)) {
            return Optional.empty();
        }
        Value value = value(from, to);
        if (value == null) {
            throw unknown.get();
        }
        return Optional.of(block -> converted(block, to, value));
    }

    /** A longer text is no conversion. */
    private static boolean keepsText(Type from, Type to)
    {
        return switch (from) {
            case VarcharType narrow when to instanceof VarcharType wide -> wide.isUnbounded() || (!narrow.isUnbounded() && narrow.getBoundedLength() <= wide.getBoundedLength());
            case CharType narrow when to instanceof CharType wide -> narrow.getLength() <= wide.getLength();
            case CharType narrow when to instanceof VarcharType wide -> wide.isUnbounded() || narrow.getLength() <= wide.getBoundedLength();
            default -> false;
        };
    }

    private static Value value(Type from, Type to)
    {
        int integer = INTEGERS.indexOf(from);
        if (integer >= 0) {
            return ofInteger(from, integer, to);
        }
        return switch (from) {
            case VarcharType text -> ofText(text, to);
            case CharType text when to instanceof CharType shorter -> (block, at, into) ->
                    shorter.writeSlice(into, Chars.truncateToLengthAndTrimSpaces(text.getSlice(block, at), shorter));
            case CharType text when to instanceof VarcharType shorter -> (block, at, into) ->
                    shorter.writeSlice(into, Varchars.truncateToLength(text.getSlice(block, at), shorter.getBoundedLength()));
            case BooleanType flag when to instanceof VarcharType text -> (block, at, into) -> writeText(flag.getBoolean(block, at) ? "TRUE" : "FALSE", text, into);
            case RealType real when to instanceof DoubleType wide -> (block, at, into) -> wide.writeDouble(into, real.getFloat(block, at));
            case DoubleType wide when to instanceof RealType real -> (block, at, into) -> real.writeFloat(into, (float) wide.getDouble(block, at));
            default -> null;
        };
    }

    private static Value ofInteger(Type from, int width, Type to)
    {
        if (INTEGERS.indexOf(to) > width) {
            return (block, at, into) -> to.writeLong(into, from.getLong(block, at));
        }
        return switch (to) {
            case VarcharType text -> (block, at, into) -> writeText(Long.toString(from.getLong(block, at)), text, into);
            case DoubleType wide -> (block, at, into) -> {
                long value = from.getLong(block, at);
                if (value < -EXACT_IN_DOUBLE || value >= EXACT_IN_DOUBLE) {
                    throw new TrinoException(INVALID_CAST_ARGUMENT, "Cannot read value '%d' as DOUBLE".formatted(value));
                }
                wide.writeDouble(into, value);
            };
            default -> null;
        };
    }

    private static Value ofText(VarcharType from, Type to)
    {
        return switch (to) {
            case VarcharType shorter -> (block, at, into) -> shorter.writeSlice(into, Varchars.truncateToLength(from.getSlice(block, at), shorter));
            case CharType shorter -> (block, at, into) -> shorter.writeSlice(into, Chars.truncateToLengthAndTrimSpaces(from.getSlice(block, at), shorter));
            case BooleanType flag -> (block, at, into) -> flag.writeBoolean(into, !FALSE.contains(from.getSlice(block, at).toStringUtf8().toLowerCase(Locale.ENGLISH)));
            // as in Hive: too large an int becomes a smaller one
            case TinyintType _ -> number(text -> (long) (byte) Integer.parseInt(text), from, to);
            case SmallintType _ -> number(text -> (long) (short) Integer.parseInt(text), from, to);
            case IntegerType _ -> number(text -> (long) Integer.parseInt(text), from, to);
            case BigintType _ -> number(Long::parseLong, from, to);
            case RealType _ -> number(text -> (long) Float.floatToRawIntBits(Float.parseFloat(text)), from, to);
            case DoubleType wide -> (block, at, into) -> {
                try {
                    wide.writeDouble(into, Double.parseDouble(from.getSlice(block, at).toStringUtf8()));
                }
                catch (NumberFormatException e) {
                    into.appendNull();
                }
            };
            default -> null;
        };
    }

    private static Value number(ToLongFunction<String> parsed, VarcharType from, Type to)
    {
        return (block, at, into) -> {
            long value;
            try {
                value = parsed.applyAsLong(from.getSlice(block, at).toStringUtf8());
            }
            catch (NumberFormatException e) {
                into.appendNull();
                return;
            }
            to.writeLong(into, value);
        };
    }

    private static void writeText(String value, VarcharType type, BlockBuilder into)
    {
        Slice text = Slices.utf8Slice(value);
        if (!type.isUnbounded() && SliceUtf8.countCodePoints(text) > type.getBoundedLength()) {
            throw new TrinoException(INVALID_ARGUMENTS, "Varchar representation of %s exceeds %s bounds".formatted(value, type));
        }
        type.writeSlice(into, text);
    }

    private static Block converted(Block block, Type to, Value value)
    {
        BlockBuilder into = to.createBlockBuilder(null, block.getPositionCount());
        for (int at = 0; at < block.getPositionCount(); at++) {
            if (block.isNull(at)) {
                into.appendNull();
            }
            else {
                value.convert(block, at, into);
            }
        }
        return into.build();
    }

    private interface Value
    {
        void convert(Block block, int position, BlockBuilder into);
    }
}
