package io.skipbridge.trino.hive;

import io.trino.spi.connector.SchemaTableName;

import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

import static java.util.concurrent.TimeUnit.DAYS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;

/**
 * When tables last changed through this catalog, by the coordinator's monotonic clock. A change that is not remembered, such as one of the time before
 * the coordinator started, counts as of the moment since which all are.
 */
final class RecentChanges
{
    private static final long KEPT = DAYS.toNanos(1);
    private static final String ALL_TABLES = "*";

    private final LongSupplier clock;
    private final Map<SchemaTableName, Long> changes = new ConcurrentHashMap<>();
    private volatile long since;

    /** @param clock in nanoseconds */
    RecentChanges(LongSupplier clock)
    {
        this.clock = clock;
        this.since = clock.getAsLong();
    }

    void add(SchemaTableName table)
    {
        long now = clock.getAsLong();
        if (now - since > 2 * KEPT) {
            since = now - KEPT;
            changes.values().removeIf(then -> then - since < 0);
        }
        changes.put(table, now);
    }

    static SchemaTableName all(String schema)
    {
        return new SchemaTableName(schema, ALL_TABLES);
    }

    /** At most so many milliseconds ago the table changed last. */
    OptionalLong age(SchemaTableName table)
    {
        long now = clock.getAsLong();
        long nanos = Math.min(now - since, Math.min(age(now, table), age(now, all(table.getSchemaName()))));
        return OptionalLong.of(Math.max(0, NANOSECONDS.toMillis(nanos)));
    }

    private long age(long now, SchemaTableName name)
    {
        Long then = changes.get(name);
        return then == null ? Long.MAX_VALUE : now - then;
    }
}
