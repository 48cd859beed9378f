package io.skipbridge.trino.hive;

import org.junit.jupiter.api.Test;

import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;

class TestHiveSettings
{
    @Test
    void testAnotherMetastoreOrUserThanThePlannersLeavesItNothing()
    {
        for (Map.Entry<String, String> each : Map.of(
                "hive.metastore", "glue",
                "hive.metastore.thrift.catalog-name", "spark",
                "hive.metastore.thrift.impersonation.enabled", "true",
                "hive.metastore.impersonation-enabled", "TRUE",
                "hive.hdfs.impersonation.enabled", "true").entrySet()) {
            HiveSettings settings = HiveSettings.parse(Map.of(each.getKey(), each.getValue()));
            assertEquals(each.getKey() + " is " + each.getValue(), settings.elsewhere().orElseThrow());
            assertEquals(settings.elsewhere(), settings.never());
        }
    }

    @Test
    void testWhatOnlyHivesReaderHonoursGoesToIt()
    {
        for (Map.Entry<String, String> each : Map.of(
                "hive.recursive-directories", "true",
                "hive.orc.read-legacy-short-zone-id", "true",
                "hive.s3-glacier-filter", "READ_NON_GLACIER",
                "hive.s3.storage-class-filter", "READ_NON_GLACIER_AND_RESTORED").entrySet()) {
            HiveSettings settings = HiveSettings.parse(Map.of(each.getKey(), each.getValue()));
            assertEquals(each.getKey() + " is " + each.getValue(), settings.never().orElseThrow());
            assertEquals(true, settings.elsewhere().isEmpty());
        }
        assertEquals(true, HiveSettings.parse(Map.of("hive.metastore", " thrift", "hive.metastore.thrift.catalog-name", "hive", "hive.recursive-directories", "false", "hive.s3-glacier-filter", "read_all")).never().isEmpty());
    }
}
