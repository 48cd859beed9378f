package io.skipbridge.trino.hive;

import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.session.PropertyMetadata;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TimeZone;
import java.util.TreeMap;

import static io.skipbridge.trino.BridgeConfig.bool;
import static io.skipbridge.trino.BridgeErrorCode.INVALID_CONFIGURATION;
import static io.trino.spi.session.PropertyMetadata.booleanProperty;
import static io.trino.spi.session.PropertyMetadata.stringProperty;

/**
 * What a full catalog's properties say about which side reads.
 *
 * @param elsewhere why the planner's tables are not the catalog's; empty: they are
 * @param never why no table that Hive reads is read natively; empty: tables are
 * @param onPlannerFailure {@code fail} or {@code hive}
 * @param refreshAfterWrite whether the planner is asked to refresh the index of what was written
 * @param orcByName how the native reader finds the columns of ORC
 */
record HiveSettings(Optional<String> elsewhere, Optional<String> never, String onPlannerFailure, boolean refreshAfterWrite, boolean orcByName)
{
    static final String ON_PLANNER_FAILURE = "skipbridge.on-planner-failure";
    static final String REFRESH_AFTER_WRITE = "skipbridge.refresh-after-write";
    /** Properties of a full catalog alone. */
    static final List<String> NAMES = List.of(ON_PLANNER_FAILURE, REFRESH_AFTER_WRITE);
    private static final String NATIVE_READS = "native_reads";
    private static final String SESSION_ON_PLANNER_FAILURE = "on_planner_failure";
    /** Properties under which the planner asks another metastore, or as another user, unless they have this value. */
    private static final Map<String, String> SAME_TABLES = Map.of(
            "hive.metastore", "thrift",
            "hive.metastore.thrift.catalog-name", "hive",
            "hive.metastore.thrift.impersonation.enabled", "false",
            "hive.metastore.impersonation-enabled", "false",
            "hive.hdfs.impersonation.enabled", "false");
    /** Properties under which Hive's reader gives other rows than the native one, unless they have this value. */
    private static final Map<String, String> SAME_ROWS = Map.of(
            "hive.recursive-directories", "false",
            "hive.orc.read-legacy-short-zone-id", "false",
            "hive.s3-glacier-filter", "READ_ALL",
            "hive.s3.storage-class-filter", "READ_ALL");

    static HiveSettings parse(Map<String, String> properties)
    {
        Optional<String> elsewhere = other(SAME_TABLES, properties);
        return new HiveSettings(
                elsewhere,
                elsewhere.or(() -> other(SAME_ROWS, properties)).or(() -> otherZone(properties)),
                failure(ON_PLANNER_FAILURE, properties.getOrDefault(ON_PLANNER_FAILURE, "fail").strip()),
                bool(REFRESH_AFTER_WRITE, properties.getOrDefault(REFRESH_AFTER_WRITE, "false")),
                Boolean.parseBoolean(properties.getOrDefault("hive.orc.use-column-names", properties.getOrDefault("skipbridge.orc.use-column-names", "false")).strip()));
    }

    private static Optional<String> other(Map<String, String> same, Map<String, String> properties)
    {
        return new TreeMap<>(same).entrySet().stream()
                .filter(each -> properties.containsKey(each.getKey()) && !properties.get(each.getKey()).strip().equalsIgnoreCase(each.getValue()))
                .map(each -> "%s is %s".formatted(each.getKey(), properties.get(each.getKey()).strip()))
                .findFirst();
    }

    /** Native reads take the JVM's zone for timestamps of binary RC files, in any partition of a table. */
    private static Optional<String> otherZone(Map<String, String> properties)
    {
        return Optional.ofNullable(properties.get("hive.rcfile.time-zone"))
                .filter(zone -> !TimeZone.getTimeZone(zone.strip()).hasSameRules(TimeZone.getDefault()))
                .map("hive.rcfile.time-zone is %s"::formatted);
    }

    private static String failure(String name, String value)
    {
        if (!List.of("fail", "hive").contains(value)) {
            throw new TrinoException(INVALID_CONFIGURATION, "%s: '%s' is neither fail nor hive".formatted(name, value));
        }
        return value;
    }

    List<PropertyMetadata<?>> sessionProperties()
    {
        return List.of(
                booleanProperty(NATIVE_READS, "Read tables natively where the planner can; off: all tables are read as the hive connector does", true, false),
                stringProperty(SESSION_ON_PLANNER_FAILURE, "What a query does that finds no planner: fail, or hive to read without skipping", onPlannerFailure, value -> failure(SESSION_ON_PLANNER_FAILURE, value), false));
    }

    /** Why nothing at all is read natively in this session; empty: tables are. */
    Optional<String> off(ConnectorSession session)
    {
        return elsewhere.or(() -> session.getProperty(NATIVE_READS, Boolean.class) ? Optional.empty() : Optional.of("native_reads is false"));
    }

    static boolean readsWithoutPlanner(ConnectorSession session)
    {
        return session.getProperty(SESSION_ON_PLANNER_FAILURE, String.class).equals("hive");
    }

    /** Why this session's tables are read by Hive's reader; empty: nothing speaks against native reads. */
    Optional<String> hives(ConnectorSession session)
    {
        if (never.isPresent()) {
            return never;
        }
        if (!session.getProperty("parquet_use_column_names", Boolean.class)) {
            return Optional.of("columns of Parquet are found by position");
        }
        if (session.getProperty("orc_use_column_names", Boolean.class) != orcByName) {
            return Optional.of("orc_use_column_names is not the catalog's");
        }
        if (session.getProperty("parquet_ignore_statistics", Boolean.class)) {
            return Optional.of("statistics of Parquet are ignored");
        }
        if (session.getProperty("ignore_absent_partitions", Boolean.class)) {
            return Optional.of("absent partitions are ignored");
        }
        if (session.getProperty("query_partition_filter_required", Boolean.class)) {
            return Optional.of("queries need a filter on partitions");
        }
        return Optional.empty();
    }
}
