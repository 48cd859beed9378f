package io.skipbridge.trino;

import io.skipbridge.trino.wire.PlannerAddress;
import io.trino.spi.TrinoException;
import org.joda.time.DateTimeZone;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.TimeUnit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestBridgeConfig
{
    @Test
    void hasDefaults()
    {
        BridgeConfig config = BridgeConfig.parse(Map.of());
        assertEquals(List.of(new PlannerAddress("127.0.0.1", 9527)), config.planners());
        assertTrue(config.pruningEnabled());
        assertEquals(1_000, config.dynamicFilterWait().toMillis());
        assertEquals(30, config.plannerTimeout().toSeconds());
    }

    @Test
    void readsItsProperties()
    {
        BridgeConfig config = BridgeConfig.parse(Map.of(
                "skipbridge.planner", "a:1,b:2",
                "skipbridge.planner.timeout", "5s",
                "skipbridge.pruning-enabled", "false",
                "skipbridge.dynamic-filter-wait", "0s",
                "s3.region", "eu-west-1"));
        assertEquals(2, config.planners().size());
        assertFalse(config.pruningEnabled());
        assertEquals(0, config.dynamicFilterWait().getValue(TimeUnit.SECONDS));
        assertEquals(Map.of("s3.region", "eu-west-1"), config.fileSystemProperties());
    }

    @Test
    void zoneIsTrinosOwnProperty()
    {
        assertEquals(DateTimeZone.forTimeZone(TimeZone.getDefault()).getOffset(0), DateTimeZone.forID(BridgeConfig.parse(Map.of()).timeZone()).getOffset(0));
        assertEquals("America/New_York", BridgeConfig.parse(Map.of("hive.parquet.time-zone", "America/New_York")).timeZone());
        assertEquals("UTC", BridgeConfig.parse(Map.of("skipbridge.parquet.time-zone", "Etc/UTC")).timeZone());
        assertEquals("UTC", BridgeConfig.parse(Map.of("hive.parquet.time-zone", "UTC", "skipbridge.parquet.time-zone", "UTC")).timeZone());
        assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("hive.parquet.time-zone", "UTC", "skipbridge.parquet.time-zone", "Asia/Tokyo")));
        TrinoException failure = assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("hive.parquet.time-zone", "Mars/Olympus")));
        assertTrue(failure.getMessage().contains("Mars/Olympus"), failure.getMessage());
    }

    @Test
    void showsNoSecret()
    {
        String shown = BridgeConfig.parse(Map.of("s3.aws-secret-key", "hidden")).toString();
        assertTrue(shown.contains("s3.aws-secret-key"), shown);
        assertFalse(shown.contains("hidden"), shown);
    }

    @Test
    void namesTheNearestOfAnUnknownProperty()
    {
        TrinoException failure = assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("skipbridge.prunning-enable", "true")));
        assertTrue(failure.getMessage().contains("skipbridge.pruning-enabled"), failure.getMessage());
        assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("skipbridge.planner", "here")));
        assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("skipbridge.pruning-enabled", "yes")));
        assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("skipbridge.planner.timeout", "soon")));
    }
}
