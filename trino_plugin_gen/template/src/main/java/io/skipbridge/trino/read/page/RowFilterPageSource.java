package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.metrics.Metrics;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.type.TypeUtils;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** Removes rows that do not belong to the snapshot, then the columns that only the filter needed. */
public final class RowFilterPageSource
        implements ConnectorPageSource
{
    private final ConnectorPageSource source;
    private final List<BridgeColumnHandle> channels;
    private final Map<BridgeColumnHandle, Domain> filter;
    private final int[] projected;

    /**
     * @param channels of {@code source}; the first {@code width} of them are the scan's
     * @param filter not none; its columns are all among the channels
     */
    public RowFilterPageSource(ConnectorPageSource source, List<BridgeColumnHandle> channels, int width, TupleDomain<BridgeColumnHandle> filter)
    {
        this.source = source;
        this.channels = channels;
        this.filter = filter.getDomains().orElseThrow();
        this.projected = IntStream.range(0, width).toArray();
    }

    @Override
    public SourcePage getNextSourcePage()
    {
        SourcePage page = source.getNextSourcePage();
        if (page == null) {
            return null;
        }
        int[] kept = new int[page.getPositionCount()];
        int count = kept.length;
        for (int i = 0; i < count; i++) {
            kept[i] = i;
        }
        for (Map.Entry<BridgeColumnHandle, Domain> entry : filter.entrySet()) {
            count = keep(page.getBlock(channels.indexOf(entry.getKey())), entry.getKey(), entry.getValue(), kept, count);
        }
        if (count == 0) {
            return null;
        }
        Page whole = page.getPage();
        return SourcePage.create((count == kept.length ? whole : whole.getPositions(kept, 0, count)).getColumns(projected));
    }

    /** Keeps the positions whose value the domain includes, and returns their number. */
    private static int keep(Block block, BridgeColumnHandle column, Domain domain, int[] kept, int count)
    {
        int left = 0;
        for (int i = 0; i < count; i++) {
            if (domain.includesNullableValue(TypeUtils.readNativeValue(column.type(), block, kept[i]))) {
                kept[left++] = kept[i];
            }
        }
        return left;
    }

    @Override
    public long getCompletedBytes()
    {
        return source.getCompletedBytes();
    }

    @Override
    public OptionalLong getCompletedPositions()
    {
        return source.getCompletedPositions();
    }

    @Override
    public long getReadTimeNanos()
    {
        return source.getReadTimeNanos();
    }

    @Override
    public CompletableFuture<?> isBlocked()
    {
        return source.isBlocked();
    }

    @Override
    public boolean isFinished()
    {
        return source.isFinished();
    }

    @Override
    public long getMemoryUsage()
    {
        return source.getMemoryUsage();
    }

    @Override
    public Metrics getMetrics()
    {
        return source.getMetrics();
    }

    @Override
    public void close()
            throws IOException
    {
        source.close();
    }
}
