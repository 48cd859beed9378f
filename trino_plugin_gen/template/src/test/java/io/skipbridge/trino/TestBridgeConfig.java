package io.skipbridge.trino;

import io.skipbridge.trino.read.storage.Store;
import io.skipbridge.trino.wire.PlannerAddress;
import io.trino.spi.TrinoException;
import org.joda.time.DateTimeZone;
import org.junit.jupiter.api.Test;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
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
        assertTrue(config.dynamicFilterWait().isEmpty());
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
        assertEquals(0, config.dynamicFilterWait().orElseThrow().getValue(TimeUnit.SECONDS));
        assertEquals(Map.of("s3.region", "eu-west-1"), config.storage().properties());
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
    void takesTheNamesThatTrinosConnectorsGiveToStorage()
    {
        assertEquals(Set.of(), stores("fs.native-local.enabled", "true", "local.location", "/"));
        assertEquals(Set.of(Store.S3), stores("fs.native-s3.enabled", "true", "fs.hadoop.enabled", "false"));
        assertEquals(Set.of(Store.S3), stores("fs.s3.enabled", "true", "s3.region", "x"));
        assertEquals(Set.of(Store.S3), stores("s3.security-mapping.enabled", "true"));
        assertEquals(Set.of(), stores("fs.native-s3.enabled", "false", "fs.cache.enabled", "false"));
        assertEquals(Set.of(Store.GCS), stores("fs.native-gcs.enabled", "true", "gcs.project-id", "x"));
        assertEquals(Set.of(Store.GCS), stores("fs.gcs.enabled", "true", "fs.native-gcs.enabled", "true"));
        assertEquals(Set.of(Store.AZURE), stores("fs.azure.enabled", "true", "azure.auth-type", "OAUTH"));
        assertEquals(Set.of(Store.HDFS, Store.S3), stores("fs.hadoop.enabled", "true", "hive.config.resources", "/core-site.xml", "fs.s3.enabled", "true"));
        Map<String, String> hdfs = Map.of("fs.hadoop.enabled", "true", "hive.hdfs.authentication.type", "KERBEROS", "hive.dfs-timeout", "60s", "hive.parquet.time-zone", "UTC");
        assertEquals(Set.of("hive.hdfs.authentication.type", "hive.dfs-timeout"), BridgeConfig.parse(hdfs).storage().properties().keySet());
    }

    @Test
    void takesThePropertiesOfTheCache()
    {
        StorageProperties storage = BridgeConfig.parse(Map.of("s3.region", "x", "fs.cache.enabled", "true", "fs.cache.directories", "/c")).storage();
        assertEquals(Optional.of(Map.of("fs.cache.directories", "/c")), storage.cache());
        assertEquals(Set.of("s3.region"), storage.properties().keySet());
        assertEquals(Optional.empty(), BridgeConfig.parse(Map.of("s3.region", "x")).storage().cache());
    }

    @Test
    void saysWhyItRefusesStorage()
    {
        assertTrue(refusal("fs.alluxio.enabled", "true").contains("Alluxio"));
        assertTrue(refusal("fs.cache.enabled", "true").contains("local files only"));
        assertTrue(refusal("fs.cache.directories", "/c").contains("cache is off"));
        assertTrue(refusal("gcs.project-id", "x").contains("set fs.native-gcs.enabled to true"));
        assertTrue(refusal("hive.hdfs.impersonation.enabled", "true").contains("HDFS is off"));
        assertTrue(refusal("fs.tracking.enabled", "true").contains("local files only"));
        assertTrue(refusal("fs.native-s3.enabled", "yes").contains("neither true nor false"));
        assertTrue(refusal("local.location", "/lake").contains("/lake"));
        TrinoException off = assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("fs.native-s3.enabled", "false", "s3.region", "x")));
        assertTrue(off.getMessage().contains("S3 is off"), off.getMessage());
        TrinoException both = assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("fs.native-s3.enabled", "false", "fs.s3.enabled", "true")));
        assertTrue(both.getMessage().contains("fs.native-s3.enabled and fs.s3.enabled"), both.getMessage());
    }

    private static Set<Store> stores(String... properties)
    {
        Map<String, String> map = new HashMap<>();
        for (int i = 0; i < properties.length; i += 2) {
            map.put(properties[i], properties[i + 1]);
        }
        return BridgeConfig.parse(map).storage().stores();
    }

    private static String refusal(String name, String value)
    {
        String message = assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of(name, value))).getMessage();
        assertTrue(message.contains(name), message);
        return message;
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

    @Test
    void aCopiedPropertyOfTheMetastoreIsToldWhereItBelongs()
    {
        TrinoException failure = assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("hive.metastore.uri", "thrift://127.0.0.1:9083")));
        assertTrue(failure.getMessage().contains("'hive.metastore.uri'") && failure.getMessage().contains("set metastore.uri where skipbridge serve runs"), failure.getMessage());
        assertFalse(failure.getMessage().contains("nearest"), failure.getMessage());
    }

    @Test
    void anAddressIsNoUrl()
    {
        TrinoException failure = assertThrows(TrinoException.class, () -> BridgeConfig.parse(Map.of("skipbridge.planner", "http://127.0.0.1:9527")));
        assertTrue(failure.getMessage().contains("'http://127.0.0.1:9527' is not host:port"), failure.getMessage());
    }
}
