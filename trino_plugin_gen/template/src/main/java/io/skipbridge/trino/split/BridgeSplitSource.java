package io.skipbridge.trino.split;

import io.trino.spi.connector.ConnectorSplitSource;
import io.trino.spi.metrics.Metrics;

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
    public CompletableFuture<ConnectorSplitBatch> getNextBatch(int maxSize)
    {
        dynamicFilter.asked();
        return queue.drain(maxSize, drained -> new ConnectorSplitBatch(drained.splits(), drained.last()));
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
