package io.skipbridge.trino.hive;

import io.airlift.units.Duration;
import io.trino.spi.connector.SchemaTableName;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import static java.util.concurrent.TimeUnit.DAYS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

/** Tables that were changed through this catalog a moment ago. The planner may still hold an older definition or listing of them. */
final class RecentChanges
{
    /** The planner keeps a table's definition for a second; the rest is for late answers. */
    private static final long SPAN = SECONDS.toNanos(5);
    private static final String ALL_TABLES = "*";
    private static final String FRESHNESS = "skipbridge.freshness";
    private static final String CACHED = "cached(";

    private final Map<SchemaTableName, Long> changes = new ConcurrentHashMap<>();

    void add(SchemaTableName table)
    {
        long now = System.nanoTime();
        changes.values().removeIf(then -> now - then > DAYS.toNanos(1));
        changes.put(table, now);
    }

    static SchemaTableName all(String schema)
    {
        return new SchemaTableName(schema, ALL_TABLES);
    }

    /** @param properties of the table, of which the freshness may let the planner hold a listing for longer */
    boolean contains(SchemaTableName table, Map<String, String> properties)
    {
        long span = SPAN + held(properties.getOrDefault(FRESHNESS, "").strip());
        return since(table) <= span || since(all(table.getSchemaName())) <= span;
    }

    private long since(SchemaTableName name)
    {
        Long then = changes.get(name);
        return then == null ? Long.MAX_VALUE : System.nanoTime() - then;
    }

    private static long held(String freshness)
    {
        if (!freshness.startsWith(CACHED) || !freshness.endsWith(")")) {
            return 0;
        }
        try {
            return Duration.valueOf(freshness.substring(CACHED.length(), freshness.length() - 1).strip()).roundTo(NANOSECONDS);
        }
        catch (IllegalArgumentException e) {
            return DAYS.toNanos(1);
        }
    }
}
