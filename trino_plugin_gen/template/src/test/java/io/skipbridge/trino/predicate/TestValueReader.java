package io.skipbridge.trino.predicate;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.airlift.slice.Slices;
import io.skipbridge.client.JsonText;
import io.trino.spi.type.Int128;
import io.trino.spi.type.LongTimestampWithTimeZone;
import io.trino.spi.type.Type;
import org.junit.jupiter.api.Test;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.CharType.createCharType;
import static io.trino.spi.type.DateTimeEncoding.packDateTimeWithZone;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DecimalType.createDecimalType;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.TimeZoneKey.UTC_KEY;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;
import static io.trino.spi.type.TimestampType.TIMESTAMP_PICOS;
import static io.trino.spi.type.TimestampWithTimeZoneType.TIMESTAMP_TZ_MICROS;
import static io.trino.spi.type.TimestampWithTimeZoneType.TIMESTAMP_TZ_MILLIS;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarbinaryType.VARBINARY;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** What the writer writes is read back as the same native value. */
class TestValueReader
{
    private static final ObjectMapper MAPPER = new ObjectMapper();

    @Test
    void readsWhatIsWritten()
            throws Exception
    {
        roundTrip(BOOLEAN, true);
        roundTrip(TINYINT, -128L);
        roundTrip(BIGINT, Long.MIN_VALUE);
        roundTrip(DATE, -719_162L);
        roundTrip(REAL, (long) Float.floatToIntBits(0.1f));
        roundTrip(REAL, (long) Float.floatToIntBits(Float.NEGATIVE_INFINITY));
        roundTrip(DOUBLE, 5e-324);
        roundTrip(DOUBLE, Double.POSITIVE_INFINITY);
        roundTrip(createDecimalType(18, 2), -999_999_999_999_999_999L);
        roundTrip(createDecimalType(38, 0), Int128.valueOf("-99999999999999999999999999999999999999"));
        roundTrip(TIMESTAMP_MICROS, -1L);
        roundTrip(VARCHAR, Slices.utf8Slice("a\"\\\u0000é😀"));
        roundTrip(VARBINARY, Slices.wrappedBuffer((byte) 0, (byte) -1));
    }

    @Test
    void readsInstantsAsThePlannerWritesThem()
            throws Exception
    {
        assertEquals(packDateTimeWithZone(-2, UTC_KEY), read("\"-2.000000000\"", TIMESTAMP_TZ_MILLIS));
        assertEquals(LongTimestampWithTimeZone.fromEpochMillisAndFraction(-2, 1_000_000, UTC_KEY), read("\"-2.001000000\"", TIMESTAMP_TZ_MICROS));
    }

    @Test
    void knowsWhatItCannotRead()
            throws Exception
    {
        assertNull(read("null", BIGINT));
        assertTrue(ValueReader.readable(VARCHAR));
        assertFalse(ValueReader.readable(createCharType(4)));
        assertFalse(ValueReader.readable(TIMESTAMP_PICOS));
    }

    private static void roundTrip(Type type, Object value)
            throws Exception
    {
        JsonText json = new JsonText();
        ValueWriter.write(json, type, value);
        assertTrue(ValueReader.readable(type));
        assertEquals(value, read(json.toString(), type), json.toString());
    }

    private static Object read(String json, Type type)
            throws Exception
    {
        return ValueReader.read(MAPPER.readTree(json), type);
    }
}
