package io.skipbridge.trino.read.page;

import io.skipbridge.trino.read.file.ReadCounters;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.metrics.Metrics;

import java.io.IOException;
import java.util.OptionalLong;

/** A page source over the files of a split: what all of them count, and how they end. */
public abstract class SplitPageSource
        implements ConnectorPageSource
{
    protected final ReadCounters counters = new ReadCounters();
    private long positions;
    private boolean finished;

    /** The next page; null if there is none yet, or none at all: then {@link #end} was called. */
    protected abstract SourcePage nextPage()
            throws IOException;

    /** An error that names the file in work. */
    protected abstract RuntimeException failure(Throwable problem);

    protected abstract void closeFiles()
            throws IOException;

    protected final void end()
    {
        finished = true;
    }

    /** Rows handed out so far. */
    protected final long positions()
    {
        return positions;
    }

    @Override
    public final SourcePage getNextSourcePage()
    {
        try {
            SourcePage page = nextPage();
            positions += page == null ? 0 : page.getPositionCount();
            return page;
        }
        catch (IOException | RuntimeException | LinkageError e) {
            throw failure(e);
        }
    }

    @Override
    public final long getCompletedBytes()
    {
        return counters.bytes();
    }

    @Override
    public final OptionalLong getCompletedPositions()
    {
        return OptionalLong.of(positions);
    }

    @Override
    public final long getReadTimeNanos()
    {
        return counters.nanos();
    }

    @Override
    public final boolean isFinished()
    {
        return finished;
    }

    @Override
    public final Metrics getMetrics()
    {
        return counters.metrics();
    }

    @Override
    public final void close()
            throws IOException
    {
        end();
        closeFiles();
    }
}
