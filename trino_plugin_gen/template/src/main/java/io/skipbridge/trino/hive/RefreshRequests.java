package io.skipbridge.trino.hive;

import io.airlift.log.Logger;
import io.trino.spi.connector.SchemaTableName;

import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.function.BiConsumer;

import static java.util.concurrent.TimeUnit.SECONDS;

/** Asks the planner to refresh the index of what was written, beside the queries: no write waits for it or fails of it. */
final class RefreshRequests
{
    private static final Logger log = Logger.get(RefreshRequests.class);
    private static final int MOST_WAITING = 1000;
    /** Of one table; more than that, and all of the table is refreshed. */
    private static final int MOST_PARTITIONS = 1000;

    private final String catalog;
    private final BiConsumer<SchemaTableName, List<String>> planner;
    private final ThreadPoolExecutor thread;

    RefreshRequests(String catalog, BiConsumer<SchemaTableName, List<String>> planner)
    {
        this.catalog = catalog;
        this.planner = planner;
        this.thread = new ThreadPoolExecutor(1, 1, 10, SECONDS, new ArrayBlockingQueue<>(MOST_WAITING), task -> {
            Thread made = new Thread(task, "skipbridge-refresh-" + catalog);
            made.setDaemon(true);
            return made;
        });
        thread.allowCoreThreadTimeOut(true);
    }

    /** @param partitions that were written; none: any of the table */
    void add(SchemaTableName table, List<String> partitions)
    {
        List<String> few = partitions.size() > MOST_PARTITIONS ? List.of() : partitions;
        try {
            thread.execute(() -> ask(table, few));
        }
        catch (RejectedExecutionException e) {
            log.warn("Catalog %s: %s was written, and the planner was not asked to refresh its index: %s requests wait", catalog, table, MOST_WAITING);
        }
    }

    private void ask(SchemaTableName table, List<String> partitions)
    {
        try {
            planner.accept(table, partitions);
        }
        catch (RuntimeException e) {
            log.warn(e, "Catalog %s: %s was written, and no planner took the request to refresh its index. The next refresh does", catalog, table);
        }
    }

    void close()
    {
        thread.shutdownNow();
    }
}
