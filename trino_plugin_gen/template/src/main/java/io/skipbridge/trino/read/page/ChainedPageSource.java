package io.skipbridge.trino.read.page;

import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.metrics.Metrics;

import java.io.IOException;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;

/** The rows of page sources, one source after the other. */
public final class ChainedPageSource
        implements ConnectorPageSource
{
    private final List<ConnectorPageSource> sources;
    private int current;

    /** @param sources open nothing before they are asked for rows */
    public ChainedPageSource(List<ConnectorPageSource> sources)
    {
        this.sources = List.copyOf(sources);
    }

    @Override
    public SourcePage getNextSourcePage()
    {
        while (!isFinished()) {
            SourcePage page = sources.get(current).getNextSourcePage();
            if (page != null || !sources.get(current).isFinished()) {
                return page;
            }
            current++;
        }
        return null;
    }

    @Override
    public CompletableFuture<?> isBlocked()
    {
        return isFinished() ? NOT_BLOCKED : sources.get(current).isBlocked();
    }

    @Override
    public boolean isFinished()
    {
        while (current < sources.size() && sources.get(current).isFinished()) {
            current++;
        }
        return current == sources.size();
    }

    @Override
    public long getCompletedBytes()
    {
        return sources.stream().mapToLong(ConnectorPageSource::getCompletedBytes).sum();
    }

    @Override
    public OptionalLong getCompletedPositions()
    {
        return OptionalLong.of(sources.stream().mapToLong(source -> source.getCompletedPositions().orElse(0)).sum());
    }

    @Override
    public long getReadTimeNanos()
    {
        return sources.stream().mapToLong(ConnectorPageSource::getReadTimeNanos).sum();
    }

    @Override
    public long getMemoryUsage()
    {
        return sources.stream().mapToLong(ConnectorPageSource::getMemoryUsage).sum();
    }

    @Override
    public Metrics getMetrics()
    {
        Metrics.Accumulator all = Metrics.accumulator();
        sources.forEach(source -> all.add(source.getMetrics()));
        return all.get();
    }

    @Override
    public void close()
            throws IOException
    {
        current = sources.size();
        IOException first = null;
        for (ConnectorPageSource source : sources) {
            try {
                source.close();
            }
            catch (IOException e) {
                first = first == null ? e : first;
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
