package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.block.Block;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.metrics.Metrics;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Supplier;

/**
 * Removes rows by the dynamic filter as it is known when each page is read. The engine applies to the rows of a split only what was known when it
 * created the split's driver: often nothing, because the driver then waits for the join that collects the filter. Where the engine does apply it, its
 * own test finds that all rows pass and is dropped. Other columns of removed rows are not decoded.
 */
final class DynamicFilterPageSource
        implements ConnectorPageSource
{
    /** A column's filter is dropped if it keeps more than this share of so many rows. */
    private static final double USELESS = 0.8;
    private static final int SAMPLE = 4_096;

    private final ConnectorPageSource source;
    private final List<BridgeColumnHandle> channels;
    private final Supplier<TupleDomain<BridgeColumnHandle>> predicate;
    private final TupleDomain<BridgeColumnHandle> own;
    private final List<ColumnTest> tests = new ArrayList<>();
    private TupleDomain<BridgeColumnHandle> current;
    private boolean empty;

    /**
     * @param channels of {@code source}
     * @param own the scan's own predicate, which the engine applies
     * @param predicate it and the dynamic filter; returns the same object while it does not change
     */
    DynamicFilterPageSource(ConnectorPageSource source, List<BridgeColumnHandle> channels, TupleDomain<BridgeColumnHandle> own, Supplier<TupleDomain<BridgeColumnHandle>> predicate)
    {
        this.source = source;
        this.channels = channels;
        this.predicate = predicate;
        this.own = own;
        this.current = own;
    }

    private static final class ColumnTest
    {
        private final int channel;
        private final LongDomain domain;
        private long tested;
        private long kept;

        private ColumnTest(int channel, LongDomain domain)
        {
            this.channel = channel;
            this.domain = domain;
        }

        private int keep(Block block, int[] positions, int count)
        {
            int left = domain.keep(block, positions, count);
            tested += count;
            kept += left;
            return left;
        }

        private boolean useless()
        {
            return tested >= SAMPLE && kept > USELESS * tested;
        }
    }

    @Override
    public SourcePage getNextSourcePage()
    {
        narrow();
        if (empty) {
            return null;
        }
        SourcePage page = source.getNextSourcePage();
        return page == null || tests.isEmpty() ? page : filtered(page);
    }

    private void narrow()
    {
        TupleDomain<BridgeColumnHandle> now = predicate.get();
        if (now == current) {
            return;
        }
        current = now;
        tests.clear();
        if (now.isNone()) {
            empty = true;
            return;
        }
        Map<BridgeColumnHandle, Domain> applied = own.getDomains().orElseThrow();
        now.getDomains().orElseThrow().forEach((column, domain) -> {
            int channel = channels.indexOf(column);
            if (channel >= 0 && !domain.equals(applied.get(column))) {
                LongDomain.of(column.type(), domain).ifPresent(test -> tests.add(new ColumnTest(channel, test)));
            }
        });
    }

    private SourcePage filtered(SourcePage page)
    {
        int rows = page.getPositionCount();
        int[] kept = new int[rows];
        for (int i = 0; i < rows; i++) {
            kept[i] = i;
        }
        int count = rows;
        for (ColumnTest test : tests) {
            if (count > 0) {
                count = test.keep(page.getBlock(test.channel), kept, count);
            }
        }
        tests.removeIf(ColumnTest::useless);
        if (count == 0) {
            return null;
        }
        if (count < rows) {
            page.selectPositions(kept, 0, count);
        }
        return page;
    }

    @Override
    public boolean isFinished()
    {
        return empty || source.isFinished();
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
