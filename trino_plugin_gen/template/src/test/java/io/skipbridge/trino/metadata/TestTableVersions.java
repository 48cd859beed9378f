package io.skipbridge.trino.metadata;

import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableVersion;
import io.trino.spi.connector.PointerType;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.type.LongTimestamp;
import io.trino.spi.type.LongTimestampWithTimeZone;
import io.trino.spi.type.TimeZoneKey;
import io.trino.spi.type.Type;
import org.junit.jupiter.api.Test;

import java.lang.reflect.Proxy;
import java.util.Optional;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.DateTimeEncoding.packDateTimeWithZone;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.TimestampType.createTimestampType;
import static io.trino.spi.type.TimestampWithTimeZoneType.createTimestampWithTimeZoneType;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

class TestTableVersions
{
    private static final SchemaTableName TABLE = new SchemaTableName("db", "t");
    private static final TimeZoneKey ZONE = TimeZoneKey.getTimeZoneKey("Europe/Warsaw");

    @Test
    void testAnAgeIsTheLastOfTheFlagsAndNotShown()
    {
        TableVersion version = TableVersions.newest(session(true, TABLE + ":3"), TABLE).withMaxAge(20);
        assertEquals(";read_optimized;segments=3;max_age=20", version.readVersion());
        assertEquals(TABLE + " at ;read_optimized;segments=3", version.toString());
        assertEquals(TABLE.toString(), TableVersions.newest(session(), TABLE).withMaxAge(0).toString());
        TableVersion fresh = version.fresh();
        assertEquals(";read_optimized;segments=3;max_age=20;fresh", fresh.readVersion());
        assertEquals(version.toString(), fresh.toString());
        assertEquals(fresh, fresh.fresh());
        assertEquals(TABLE.toString(), TableVersions.newest(session(), TABLE).fresh().toString());
    }

    @Test
    void namesVersions()
    {
        assertEquals("version:17", read(PointerType.TARGET_ID, BIGINT, 17L));
        assertEquals("version:-1", read(PointerType.TARGET_ID, TINYINT, -1L));
        assertEquals("version:é 1", read(PointerType.TARGET_ID, VARCHAR, utf8Slice("é 1")));
        for (String text : new String[] {"", "1;segments=2"}) {
            assertThrows(TrinoException.class, () -> read(PointerType.TARGET_ID, VARCHAR, utf8Slice(text)));
        }
        assertThrows(TrinoException.class, () -> read(PointerType.TARGET_ID, DOUBLE, 1.5));
        assertThrows(TrinoException.class, () -> read(PointerType.TARGET_ID, DATE, 1L));
    }

    @Test
    void readsTimesInTheSessionsZone()
    {
        long noon = 1_720_000_800_123L; // 2024-07-03 10:00:00.123 UTC, 12:00:00.123 in Warsaw
        assertEquals("time:" + noon, read(PointerType.TEMPORAL, createTimestampType(3), (noon + 7_200_000) * 1_000));
        assertEquals("time:" + noon, read(PointerType.TEMPORAL, createTimestampType(6), (noon + 7_200_000) * 1_000 + 999));
        assertEquals("time:" + noon, read(PointerType.TEMPORAL, createTimestampType(9), new LongTimestamp((noon + 7_200_000) * 1_000 + 999, 999_000)));
        assertEquals("time:" + noon, read(PointerType.TEMPORAL, createTimestampWithTimeZoneType(3), packDateTimeWithZone(noon, ZONE)));
        assertEquals("time:" + noon, read(PointerType.TEMPORAL, createTimestampWithTimeZoneType(6), LongTimestampWithTimeZone.fromEpochMillisAndFraction(noon, 999_000_000, ZONE)));
        assertEquals("time:-3600001", read(PointerType.TEMPORAL, createTimestampType(6), -1L)); // an hour before UTC, floored
        assertEquals("time:-3600000", read(PointerType.TEMPORAL, DATE, 0L));
        assertThrows(TrinoException.class, () -> read(PointerType.TEMPORAL, BIGINT, 1L));
    }

    @Test
    void readsTheNewestWithoutAVersionAndRefusesRanges()
    {
        assertEquals(new TableVersion(TABLE, ""), TableVersions.of(session(), TABLE, Optional.empty(), Optional.empty()));
        assertEquals(new TableVersion(TABLE, ""), TableVersions.newest(session(), TABLE));
        Optional<ConnectorTableVersion> one = Optional.of(new ConnectorTableVersion(PointerType.TARGET_ID, BIGINT, 1L));
        assertThrows(TrinoException.class, () -> TableVersions.of(session(), TABLE, one, one));
    }

    @Test
    void namesTheVersionsBetweenWhichRowsChanged()
    {
        assertEquals("changes:1..2", TableVersions.changes(session(), TABLE, "1", Optional.of("2")).readVersion());
        assertEquals("changes:1..", TableVersions.changes(session(), TABLE, "1", Optional.empty()).readVersion());
        for (String after : new String[] {"1..2", "1.", "1;read_optimized"}) {
            assertThrows(TrinoException.class, () -> TableVersions.changes(session(), TABLE, after, Optional.empty()));
        }
        assertThrows(TrinoException.class, () -> TableVersions.changes(session(), TABLE, "1", Optional.of("2;segments=3")));
    }

    @Test
    void everyVersionOfAReadOptimizedSessionSaysSo()
    {
        assertEquals(";read_optimized", TableVersions.newest(session(true), TABLE).readVersion());
        assertEquals("changes:1..2;read_optimized", TableVersions.changes(session(true), TABLE, "1", Optional.of("2")).readVersion());
        Optional<ConnectorTableVersion> one = Optional.of(new ConnectorTableVersion(PointerType.TARGET_ID, BIGINT, 1L));
        assertEquals("version:1;read_optimized", TableVersions.of(session(true), TABLE, Optional.empty(), one).readVersion());
    }

    @Test
    void chosenSegmentsFollowTheVersion()
    {
        assertEquals(";segments=3,0.1", TableVersions.newest(session(false, TABLE + ":3,0.1"), TABLE).readVersion());
        assertEquals(";read_optimized;segments=3", TableVersions.newest(session(true, TABLE + ":3"), TABLE).readVersion());
        assertEquals("", TableVersions.newest(session(false, "other.table:3"), TABLE).readVersion());
    }

    private static String read(PointerType pointer, Type type, Object value)
    {
        return TableVersions.of(session(), TABLE, Optional.empty(), Optional.of(new ConnectorTableVersion(pointer, type, value))).readVersion();
    }

    private static ConnectorSession session()
    {
        return session(false);
    }

    /** A session of which only the zone and two properties are known. */
    private static ConnectorSession session(boolean readOptimized)
    {
        return session(readOptimized, "");
    }

    private static ConnectorSession session(boolean readOptimized, String segments)
    {
        return (ConnectorSession) Proxy.newProxyInstance(TestTableVersions.class.getClassLoader(), new Class<?>[] {ConnectorSession.class}, (_, method, arguments) -> switch (method.getName()) {
            case "getTimeZoneKey" -> ZONE;
            case "getProperty" -> method.getParameterCount() == 2 && arguments[0].equals("segments") ? segments : readOptimized;
            default -> throw new UnsupportedOperationException(method.getName());
        });
    }
}
