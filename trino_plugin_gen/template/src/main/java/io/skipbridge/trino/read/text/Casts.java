package io.skipbridge.trino.read.text;

import io.airlift.slice.Slice;
import io.airlift.slice.SliceUtf8;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.BigintType;
import io.trino.spi.type.BooleanType;
import io.trino.spi.type.CharType;
import io.trino.spi.type.Chars;
import io.trino.spi.type.DateType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Decimals;
import io.trino.spi.type.DoubleType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.IntegerType;
import io.trino.spi.type.RealType;
import io.trino.spi.type.SmallintType;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.TinyintType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarbinaryType;
import io.trino.spi.type.VarcharType;
import io.trino.spi.type.Varchars;
import org.joda.time.DateTimeZone;
import org.joda.time.LocalDate;
import org.joda.time.LocalDateTime;
import org.joda.time.format.DateTimeFormat;
import org.joda.time.format.DateTimeFormatter;
import org.joda.time.format.ISODateTimeFormat;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Casts of texts to values, as {@code CAST(varchar AS type)} of Trino does them. A cast throws a RuntimeException where Trino's fails, and has then
 * written nothing.
 */
final class Casts
{
    private static final Pattern YEAR_MONTH_DAY = Pattern.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})");
    private static final DateTimeFormatter DATE = ISODateTimeFormat.date().withZoneUTC();
    /** Date, time of day, fraction of the second, zone. All but the date may be left out. */
    private static final Pattern TIMESTAMP = Pattern.compile(
            "([-+]?\\d{4,})-(\\d{1,2})-(\\d{1,2})(?: (?:(\\d{1,2}):(\\d{1,2})(?::(\\d{1,2})(?:\\.(\\d+))?)?)?\\s*(.+)?)?");
    private static final int MICROS = 6;
    private static final int MOST_DIGITS = 18;

    private Casts() {}

    /** How a text becomes a value of the type; empty if there is no such cast. */
    static Optional<Cast> to(Type type, List<String> timestampFormats, Optional<String> dateFormat)
    {
        return Optional.ofNullable(switch (type) {
            case VarcharType text when text.isUnbounded() -> text::writeSlice;
            case VarcharType text -> (into, value) -> text.writeSlice(into, Varchars.truncateToLength(value, text));
            case CharType text -> (into, value) -> text.writeSlice(into, Chars.truncateToLengthAndTrimSpaces(value, text));
            case VarbinaryType bytes -> bytes::writeSlice;
            case BooleanType flag -> (into, value) -> flag.writeBoolean(into, flag(value));
            case TinyintType number -> (into, value) -> number.writeLong(into, Byte.parseByte(trimmed(value)));
            case SmallintType number -> (into, value) -> number.writeLong(into, Short.parseShort(trimmed(value)));
            case IntegerType number -> (into, value) -> number.writeLong(into, Integer.parseInt(trimmed(value)));
            case BigintType number -> (into, value) -> number.writeLong(into, Long.parseLong(trimmed(value)));
            case RealType number -> (into, value) -> number.writeFloat(into, Float.parseFloat(trimmed(value)));
            case DoubleType number -> (into, value) -> number.writeDouble(into, Double.parseDouble(trimmed(value)));
            case DecimalType number -> (into, value) -> writeDecimal(number, value.toStringUtf8(), into);
            case DateType date -> dates(date, dateFormat);
            case TimestampType time when time.getPrecision() == MICROS -> timestamps(time, timestampFormats);
            default -> null;
        });
    }

    private static String trimmed(Slice value)
    {
        return value.toStringUtf8().trim();
    }

    private static boolean flag(Slice value)
    {
        String text = value.toStringUtf8();
        if (text.length() != value.length()) {
            throw new IllegalArgumentException("no ASCII");
        }
        return switch (text.toUpperCase(Locale.ENGLISH)) {
            case "T", "1", "TRUE" -> true;
            case "F", "0", "FALSE" -> false;
            default -> throw new IllegalArgumentException("no boolean");
        };
    }

    private static void writeDecimal(DecimalType type, String value, BlockBuilder into)
    {
        BigDecimal exact = new BigDecimal(value);
        // digits before the point; 1e999999999 is not to be written out
        long before = (long) exact.precision() - exact.scale();
        if (exact.signum() != 0 && before > type.getPrecision()) {
            throw new IllegalArgumentException("too large");
        }
        BigDecimal scaled = exact.signum() == 0 || before < -type.getScale() - 1
                ? BigDecimal.ZERO.setScale(type.getScale())
                : exact.setScale(type.getScale(), RoundingMode.HALF_UP);
        if (Decimals.overflows(scaled.unscaledValue(), type.getPrecision())) {
            throw new IllegalArgumentException("too large");
        }
        if (type.isShort()) {
            type.writeLong(into, scaled.unscaledValue().longValueExact());
        }
        else {
            type.writeObject(into, Int128.valueOf(scaled.unscaledValue()));
        }
    }

    private static Cast dates(DateType type, Optional<String> format)
    {
        if (format.isEmpty()) {
            return (into, value) -> type.writeLong(into, days(SliceUtf8.trim(value).toStringUtf8()));
        }
        DateTimeFormatter pattern = DateTimeFormat.forPattern(format.get()).withZoneUTC();
        return (into, value) -> {
            LocalDate date = pattern.parseLocalDate(trimmed(value));
            type.writeLong(into, java.time.LocalDate.of(date.getYear(), date.getMonthOfYear(), date.getDayOfMonth()).toEpochDay());
        };
    }

    private static int days(String value)
    {
        Matcher usual = YEAR_MONTH_DAY.matcher(value);
        if (usual.matches()) {
            java.time.LocalDate date = java.time.LocalDate.of(number(usual, 1), number(usual, 2), number(usual, 3));
            return Math.toIntExact(date.toEpochDay());
        }
        return Math.toIntExact(TimeUnit.MILLISECONDS.toDays(DATE.parseMillis(value)));
    }

    private static Cast timestamps(TimestampType type, List<String> formats)
    {
        if (formats.isEmpty()) {
            return (into, value) -> type.writeLong(into, micros(SliceUtf8.trim(value).toStringUtf8()));
        }
        List<DateTimeFormatter> patterns = new ArrayList<>();
        formats.forEach(format -> patterns.add(DateTimeFormat.forPattern(format).withZoneUTC()));
        return (into, value) -> type.writeLong(into, micros(trimmed(value), patterns));
    }

    private static long micros(String value, List<DateTimeFormatter> patterns)
    {
        for (DateTimeFormatter pattern : patterns) {
            try {
                LocalDateTime time = pattern.parseLocalDateTime(value);
                return Math.multiplyExact(time.toDateTime(DateTimeZone.UTC).getMillis(), 1_000L);
            }
            catch (IllegalArgumentException e) {
                // the next pattern may fit
            }
        }
        throw new IllegalArgumentException("fits no pattern");
    }

    private static long micros(String value)
    {
        Matcher parts = TIMESTAMP.matcher(value);
        if (!parts.matches()) {
            throw new IllegalArgumentException("no timestamp");
        }
        // a zone must exist, but moves nothing: the local time counts
        ZoneId zone = parts.group(8) == null ? ZoneOffset.UTC : ZoneId.of(parts.group(8));
        long seconds = ZonedDateTime.of(number(parts, 1), number(parts, 2), number(parts, 3), number(parts, 4), number(parts, 5), number(parts, 6), 0, zone)
                .toLocalDateTime()
                .toEpochSecond(ZoneOffset.UTC);
        return seconds * 1_000_000 + fraction(parts.group(7));
    }

    private static int number(Matcher parts, int group)
    {
        return parts.group(group) == null ? 0 : Integer.parseInt(parts.group(group));
    }

    /** Microseconds, rounded half up: up to a whole second. */
    private static long fraction(String digits)
    {
        if (digits == null) {
            return 0;
        }
        if (digits.length() > MOST_DIGITS) {
            throw new IllegalArgumentException("more digits than Trino reads");
        }
        return new BigDecimal("0." + digits).setScale(MICROS, RoundingMode.HALF_UP).unscaledValue().longValueExact();
    }

    /** Writes the value of a text. */
    interface Cast
    {
        void write(BlockBuilder into, Slice value);
    }
}
