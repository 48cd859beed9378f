package io.skipbridge.trino.predicate;

import io.airlift.slice.Slice;
import io.skipbridge.client.JsonText;
import io.trino.spi.type.CharType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.LongTimestamp;
import io.trino.spi.type.LongTimestampWithTimeZone;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.TimestampWithTimeZoneType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateTimeEncoding.unpackMillisUtc;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarbinaryType.VARBINARY;
import static java.lang.Math.toIntExact;

/**
 * Writes a value in the engine's native form as exact JSON.
 *
 * <p>Law: two values of a type have the same JSON only if they are equal. A value without exact JSON is refused with {@link NotWritable}, never
 * rounded.
 */
final class ValueWriter
{
    private ValueWriter() {}

    static boolean writable(Type type)
    {
        return integral(type) || type == BOOLEAN || type == REAL || type == DOUBLE || type == DATE || type == VARBINARY
                || type instanceof DecimalType || type instanceof TimestampType || type instanceof TimestampWithTimeZoneType
                || type instanceof VarcharType || type instanceof CharType;
    }

    static void write(JsonText json, Type type, Object value)
            throws NotWritable
    {
        if (type == BOOLEAN) {
            json.raw(value.toString());
        }
        else if (integral(type) || type == DATE) {
            json.raw(value.toString());
        }
        else if (type == REAL) {
            json.string(Float.toString(Float.intBitsToFloat(toIntExact((long) value))));
        }
        else if (type == DOUBLE) {
            json.string(Double.toString((double) value));
        }
        else if (type instanceof DecimalType) {
            json.string(value instanceof Int128 wide ? wide.toBigInteger().toString() : value.toString());
        }
        else if (type instanceof TimestampType) {
            if (value instanceof LongTimestamp wide) {
                json.string("%d.%06d".formatted(wide.getEpochMicros(), wide.getPicosOfMicro()));
            }
            else {
                json.raw(value.toString());
            }
        }
        else if (type instanceof TimestampWithTimeZoneType) {
            if (value instanceof LongTimestampWithTimeZone wide) {
                json.string("%d.%09d".formatted(wide.getEpochMillis(), wide.getPicosOfMilli()));
            }
            else {
                json.raw(Long.toString(unpackMillisUtc((long) value)));
            }
        }
        else if (type instanceof VarcharType) {
            json.string(text((Slice) value));
        }
        else if (type instanceof CharType) {
            json.string(text((Slice) value).replaceFirst(" +$", ""));
        }
        else if (type == VARBINARY) {
            json.string(Base64.getEncoder().encodeToString(((Slice) value).getBytes()));
        }
        else {
            throw new NotWritable("type " + type.getDisplayName());
        }
    }

    private static boolean integral(Type type)
    {
        return type == BIGINT || type == INTEGER || type == SMALLINT || type == TINYINT;
    }

    /** JSON has only Unicode: other bytes would not be read back unchanged. */
    private static String text(Slice value)
            throws NotWritable
    {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value.getBytes())).toString();
        }
        catch (CharacterCodingException e) {
            throw new NotWritable("text that is not UTF-8");
        }
    }
}
