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
    private final Thread thread;

    BridgeSplitSource(SplitQueue queue, SplitLoader loader, Thread thread)
    {
        this.queue = queue;
        this.loader = loader;
        this.thread = thread;
    }

    @Override
    public CompletableFuture<ConnectorSplitBatch> getNextBatch(int maxSize)
    {
        return queue.drain(maxSize, drained -> new ConnectorSplitBatch(drained.splits(), drained.last()));
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
