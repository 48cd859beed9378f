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
    private final DynamicFilterTracker dynamicFilter;

    BridgeSplitSource(SplitQueue queue, SplitLoader loader, DynamicFilterTracker dynamicFilter)
    {
        this.queue = queue;
        this.loader = loader;
        this.dynamicFilter = dynamicFilter;
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
        return dynamicFilter.waitMillis();
    }

    @Override
    public boolean isFinished()
    {
        return queue.finished();
    }

    @Override
    public void close()
    {
        loader.stop();
    }

    @Override
    public Metrics getMetrics()
    {
        return PruneMetrics.of(loader.report());
    }
}
