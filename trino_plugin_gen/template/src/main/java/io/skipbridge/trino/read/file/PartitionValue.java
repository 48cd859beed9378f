package io.skipbridge.trino.read.file;

import io.airlift.slice.Slices;
import io.skipbridge.trino.BridgeErrorCode;
import io.trino.spi.TrinoException;
import io.trino.spi.type.CharType;
import io.trino.spi.type.Chars;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Locale;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarbinaryType.VARBINARY;
import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Parses a partition key's text into the engine's native form of its type. '01' and '1' are the same number. A text that is longer than its type is no value
 * of it, as in Trino's hive connector.
 */
final class PartitionValue
{
    private PartitionValue() {}

    static Object parse(Type type, String text, String partition)
    {
        try {
            return parse(type, text);
        }
        catch (RuntimeException e) {
            throw new TrinoException(
                    BridgeErrorCode.INVALID_PARTITION_VALUE,
                    "Partition '%s': '%s' is not a %s. Mend the partition's name or the table's partition type".formatted(partition, text, type.getDisplayName()),
                    e);
        }
    }

    /** Whether no value of the type is this text, so that none of a list equals it. */
    static boolean isTooLong(Type type, String text)
    {
        int most = switch (type) {
            case VarcharType varchar -> varchar.getLength().orElse(Integer.MAX_VALUE);
            case CharType padded -> padded.getLength();
            default -> Integer.MAX_VALUE;
        };
        return text.codePointCount(0, text.length()) > most;
    }

    private static Object parse(Type type, String text)
    {
        if (isTooLong(type, text)) {
            throw new IllegalArgumentException("longer than its type");
        }
        if (type instanceof VarcharType) {
            return utf8Slice(text);
        }
        if (type instanceof CharType charType) {
            return Chars.truncateToLengthAndTrimSpaces(utf8Slice(text), charType);
        }
        if (type == BIGINT) {
            return Long.parseLong(text);
        }
        if (type == INTEGER) {
            return (long) Integer.parseInt(text);
        }
        if (type == SMALLINT) {
            return (long) Short.parseShort(text);
        }
        if (type == TINYINT) {
            return (long) Byte.parseByte(text);
        }
        if (type == BOOLEAN) {
            return bool(text);
        }
        if (type == DATE) {
            return LocalDate.parse(text).toEpochDay();
        }
        if (type == DOUBLE) {
            return Double.parseDouble(text);
        }
        if (type == REAL) {
            return (long) Float.floatToRawIntBits(Float.parseFloat(text));
        }
        if (type == VARBINARY) {
            return Slices.wrappedBuffer(text.getBytes(UTF_8));
        }
        if (type instanceof TimestampType timestamp && timestamp.isShort()) {
            return timestamp(text);
        }
        if (type instanceof DecimalType decimal) {
            BigInteger unscaled = new BigDecimal(text).setScale(decimal.getScale()).unscaledValue();
            if (new BigDecimal(unscaled).precision() > decimal.getPrecision()) {
                throw new ArithmeticException("more digits than the type has");
            }
            return decimal.isShort() ? (Object) unscaled.longValueExact() : Int128.valueOf(unscaled);
        }
        throw new IllegalArgumentException("unsupported type of a partition key");
    }

    private static boolean bool(String text)
    {
        return switch (text.toLowerCase(Locale.ENGLISH)) {
            case "true" -> true;
            case "false" -> false;
            default -> throw new IllegalArgumentException("neither true nor false");
        };
    }

    private static long timestamp(String text)
    {
        LocalDateTime time = text.length() == 10
                ? LocalDate.parse(text).atStartOfDay()
                : LocalDateTime.parse(text.replace(' ', 'T'));
        return Math.addExact(Math.multiplyExact(time.toEpochSecond(ZoneOffset.UTC), 1_000_000L), time.getNano() / 1_000);
    }
}
