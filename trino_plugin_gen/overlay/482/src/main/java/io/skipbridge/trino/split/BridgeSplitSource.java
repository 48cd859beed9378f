package io.skipbridge.trino.split;

import io.trino.spi.connector.ConnectorSplit;
import io.trino.spi.connector.ConnectorSplitSource;
import io.trino.spi.connector.DynamicFilterSnapshot;
import io.trino.spi.metrics.Metrics;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Gives the splits of a {@link SplitQueue} to the engine. */
final class BridgeSplitSource
        implements ConnectorSplitSource
{
    private final SplitQueue queue;
    private final SplitLoader loader;
    private final Thread thread;
    private final DynamicFilterTracker dynamicFilter;
    private final long waitMillis;

    BridgeSplitSource(SplitQueue queue, SplitLoader loader, Thread thread, DynamicFilterTracker dynamicFilter, long waitMillis)
    {
        this.queue = queue;
        this.loader = loader;
        this.thread = thread;
        this.dynamicFilter = dynamicFilter;
        this.waitMillis = waitMillis;
    }

    @Override
    public CompletableFuture<List<ConnectorSplit>> getNextBatch(int maxSize, DynamicFilterSnapshot dynamicFilterSnapshot)
    {
        dynamicFilter.offer(dynamicFilterSnapshot.currentPredicate());
        return queue.drain(maxSize, SplitQueue.Drained::splits);
    }

    /** The engine waits, then hands over what it knows with the first call. */
    @Override
    public long getRequestedDynamicFilterWaitTimeoutMillis()
    {
        return waitMillis;
    }

    @Override
    public boolean isFinished()
    {
        return queue.finished();
    }

    /** Ends the loader, which closes the plan. */
    @Override
    public void close()
    {
        queue.close();
        thread.interrupt();
    }

    @Override
    public Metrics getMetrics()
    {
        return PruneMetrics.of(loader.report());
    }
}
