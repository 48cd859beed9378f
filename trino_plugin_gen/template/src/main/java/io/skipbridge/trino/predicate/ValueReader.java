package io.skipbridge.trino.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import io.airlift.slice.Slices;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.LongTimestampWithTimeZone;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.TimestampWithTimeZoneType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;

import java.math.BigInteger;
import java.util.Base64;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateTimeEncoding.packDateTimeWithZone;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TimeZoneKey.UTC_KEY;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarbinaryType.VARBINARY;

/** Reads values that {@link ValueWriter} wrote into the engine's native form; NULL is null. */
public final class ValueReader
{
    private ValueReader() {}

    /** Whether values of the type can be read back exactly. */
    public static boolean readable(Type type)
    {
        return type == BIGINT || type == INTEGER || type == SMALLINT || type == TINYINT || type == BOOLEAN || type == REAL || type == DOUBLE
                || type == DATE || type == VARBINARY || type instanceof DecimalType || type instanceof VarcharType
                || (type instanceof TimestampType timestamp && timestamp.isShort())
                || type instanceof TimestampWithTimeZoneType;
    }

    public static Object read(JsonNode json, Type type)
    {
        if (json.isNull()) {
            return null;
        }
        if (type == BOOLEAN) {
            return json.booleanValue();
        }
        if (type == REAL) {
            return (long) Float.floatToIntBits(Float.parseFloat(json.textValue()));
        }
        if (type == DOUBLE) {
            return Double.parseDouble(json.textValue());
        }
        if (type instanceof DecimalType decimal) {
            BigInteger unscaled = new BigInteger(json.textValue());
            return decimal.isShort() ? (Object) unscaled.longValueExact() : Int128.valueOf(unscaled);
        }
        if (type instanceof VarcharType) {
            return Slices.utf8Slice(json.textValue());
        }
        if (type == VARBINARY) {
            return Slices.wrappedBuffer(Base64.getDecoder().decode(json.textValue()));
        }
        if (type instanceof TimestampWithTimeZoneType zoned) {
            return instant(json.textValue(), zoned);
        }
        if (readable(type)) {
            return json.longValue();
        }
        throw new IllegalArgumentException("values of type " + type.getDisplayName());
    }

    private static Object instant(String text, TimestampWithTimeZoneType type)
    {
        int point = text.indexOf('.');
        long millis = Long.parseLong(text.substring(0, point));
        return type.isShort()
                ? (Object) packDateTimeWithZone(millis, UTC_KEY)
                : LongTimestampWithTimeZone.fromEpochMillisAndFraction(millis, Integer.parseInt(text.substring(point + 1)), UTC_KEY);
    }
}
