package io.skipbridge.hive.segments;

import io.skipbridge.client.TypedCsvProperties;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.typeinfo.DecimalTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A cast of text to a type of Hive, with the results of Trino's {@code CAST(varchar AS type)}. It throws a RuntimeException where that fails. */
final class TextCast
{
    private static final Pattern DATE = Pattern.compile("([-+]?[0-9]{1,9})-([0-9]{1,2})-([0-9]{1,2})");
    /** Date, time of day, fraction of the second, zone. All but the date may be left out. */
    private static final Pattern TIMESTAMP = Pattern.compile(
            "([-+]?\\d{4,})-(\\d{1,2})-(\\d{1,2})(?: (?:(\\d{1,2}):(\\d{1,2})(?::(\\d{1,2})(?:\\.(\\d+))?)?)?\\s*(.+)?)?");
    private static final DateTimeFormatter SECONDS = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss");
    private static final int MICROS = 6;
    private static final int MOST_DIGITS = 18;
    private static final int LAST_YEAR = 9999;

    private final ObjectInspector inspector;
    private final Function<String, Object> cast;

    private TextCast(ObjectInspector inspector, Function<String, Object> cast)
    {
        this.inspector = inspector;
        this.cast = cast;
    }

    /** @throws IOException text is not cast to this type, or not by the patterns that the table has for it */
    static TextCast to(TypeInfo type, Map<String, String> properties, String path, String column)
            throws IOException
    {
        TextCast found = type instanceof PrimitiveTypeInfo ? to((PrimitiveTypeInfo) type) : null;
        if (found == null) {
            throw new IOException("TYPE_MISMATCH: " + path + ": the column " + column + " is declared as " + type + ", to which no text is cast");
        }
        String kind = type.getTypeName();
        String pattern = kind.equals("date") ? TypedCsvProperties.DATE_FORMAT : kind.equals("timestamp") ? TypedCsvProperties.TIMESTAMP_FORMATS : "";
        if (properties.containsKey(pattern)) {
            throw new IOException("UNSUPPORTED_FORMAT: " + path + ": Hive does not read the column " + column + " of type " + kind + " by a pattern of its own -> read it with Trino");
        }
        return found;
    }

    private static TextCast to(PrimitiveTypeInfo type)
    {
        switch (type.getPrimitiveCategory()) {
            case STRING:
            case VARCHAR:
            case CHAR:
            case BINARY:
                return new TextCast(PrimitiveObjectInspectorFactory.javaStringObjectInspector, text -> text);
            case BOOLEAN:
                return new TextCast(PrimitiveObjectInspectorFactory.javaBooleanObjectInspector, TextCast::flag);
            case BYTE:
                return new TextCast(PrimitiveObjectInspectorFactory.javaByteObjectInspector, text -> Byte.parseByte(text.trim()));
            case SHORT:
                return new TextCast(PrimitiveObjectInspectorFactory.javaShortObjectInspector, text -> Short.parseShort(text.trim()));
            case INT:
                return new TextCast(PrimitiveObjectInspectorFactory.javaIntObjectInspector, text -> Integer.parseInt(text.trim()));
            case LONG:
                return new TextCast(PrimitiveObjectInspectorFactory.javaLongObjectInspector, text -> Long.parseLong(text.trim()));
            case FLOAT:
                return new TextCast(PrimitiveObjectInspectorFactory.javaFloatObjectInspector, text -> Float.parseFloat(text.trim()));
            case DOUBLE:
                return new TextCast(PrimitiveObjectInspectorFactory.javaDoubleObjectInspector, text -> Double.parseDouble(text.trim()));
            case DECIMAL:
                DecimalTypeInfo decimal = (DecimalTypeInfo) type;
                return new TextCast(PrimitiveObjectInspectorFactory.getPrimitiveJavaObjectInspector(decimal), text -> decimal(text, decimal.precision(), decimal.scale()));
            case DATE:
                return new TextCast(PrimitiveObjectInspectorFactory.javaStringObjectInspector, text -> date(trimmed(text)));
            case TIMESTAMP:
                return new TextCast(PrimitiveObjectInspectorFactory.javaStringObjectInspector, text -> timestamp(trimmed(text)));
            default:
                return null;
        }
    }

    /** Of the values that {@link #of} returns. */
    ObjectInspector inspector()
    {
        return inspector;
    }

    Object of(String text)
    {
        return cast.apply(text);
    }

    private static Object flag(String text)
    {
        if (!text.chars().allMatch(c -> c < 128)) {
            throw new IllegalArgumentException("no ASCII");
        }
        switch (text.toUpperCase(Locale.ENGLISH)) {
            case "T":
            case "1":
            case "TRUE":
                return true;
            case "F":
            case "0":
            case "FALSE":
                return false;
            default:
                throw new IllegalArgumentException("no boolean");
        }
    }

    private static HiveDecimal decimal(String text, int precision, int scale)
    {
        BigDecimal exact = new BigDecimal(text);
        // Digits before the point: 1e999999999 is not to be written out.
        long before = (long) exact.precision() - exact.scale();
        if (exact.signum() != 0 && before > precision) {
            throw new IllegalArgumentException("too large");
        }
        BigDecimal scaled = exact.signum() == 0 || before < -scale - 1 ? BigDecimal.ZERO : exact.setScale(scale, RoundingMode.HALF_UP);
        if (scaled.signum() != 0 && scaled.unscaledValue().abs().toString().length() > precision) {
            throw new IllegalArgumentException("too large");
        }
        return HiveDecimal.create(scaled);
    }

    /** Of all kinds of white space, of which {@link String#trim} knows only some. */
    private static String trimmed(String text)
    {
        int begin = 0;
        int end = text.length();
        while (begin < end && isSpace(text.charAt(begin))) {
            begin++;
        }
        while (end > begin && isSpace(text.charAt(end - 1))) {
            end--;
        }
        return text.substring(begin, end);
    }

    private static boolean isSpace(char c)
    {
        return Character.isWhitespace(c);
    }

    private static String date(String text)
    {
        Matcher parts = DATE.matcher(text);
        if (!parts.matches()) {
            throw new IllegalArgumentException("no date");
        }
        LocalDate date = LocalDate.of(number(parts, 1), number(parts, 2), number(parts, 3));
        requireRange(date, text);
        return date.toString();
    }

    private static String timestamp(String text)
    {
        Matcher parts = TIMESTAMP.matcher(text);
        if (!parts.matches()) {
            throw new IllegalArgumentException("no timestamp");
        }
        // A zone must exist, but moves nothing: the local time counts.
        ZoneId zone = parts.group(8) == null ? ZoneOffset.UTC : ZoneId.of(parts.group(8));
        LocalDateTime seconds = ZonedDateTime.of(number(parts, 1), number(parts, 2), number(parts, 3), number(parts, 4), number(parts, 5), number(parts, 6), 0, zone)
                .toLocalDateTime();
        LocalDateTime time = seconds.plusNanos(micros(parts.group(7)) * 1_000);
        requireRange(time.toLocalDate(), text);
        return SECONDS.format(time) + String.format(".%06d", time.getNano() / 1_000);
    }

    private static void requireRange(LocalDate date, String text)
    {
        if (date.getYear() < 1 || date.getYear() > LAST_YEAR) {
            throw new OutOfHivesRange("Hive reads years from 1 to " + LAST_YEAR + ", not " + text);
        }
    }

    private static int number(Matcher parts, int group)
    {
        return parts.group(group) == null ? 0 : Integer.parseInt(parts.group(group));
    }

    /** Rounded half up: up to a whole second. */
    private static long micros(String digits)
    {
        if (digits == null) {
            return 0;
        }
        if (digits.length() > MOST_DIGITS) {
            throw new IllegalArgumentException("more digits than Trino reads");
        }
        return new BigDecimal("0." + digits).setScale(MICROS, RoundingMode.HALF_UP).unscaledValue().longValueExact();
    }

    /** A value of Trino's that Hive does not have. */
    static final class OutOfHivesRange
            extends RuntimeException
    {
        private static final long serialVersionUID = 1;

        OutOfHivesRange(String message)
        {
            super(message);
        }
    }
}
