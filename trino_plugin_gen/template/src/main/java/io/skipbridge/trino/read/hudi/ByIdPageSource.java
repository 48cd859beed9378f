package io.skipbridge.trino.read.hudi;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.metrics.Metrics;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.Function;

/** The columns of a scan, read of files that have them under other names or types. */
final class ByIdPageSource
        implements ConnectorPageSource
{
    private final ConnectorPageSource source;
    private final List<Function<SourcePage, Block>> channels;

    private ByIdPageSource(ConnectorPageSource source, List<Function<SourcePage, Block>> channels)
    {
        this.source = source;
        this.channels = List.copyOf(channels);
    }

    /** @param open reads files that all have the columns alike, by the files' own names and types */
    static ConnectorPageSource of(FileScan scan, List<PlannedFile> files, BiFunction<FileScan, List<PlannedFile>, ConnectorPageSource> open)
    {
        ReaderSpec reader = files.getFirst().reader();
        Map<String, Optional<FileColumn>> own = FileColumn.of(reader);
        List<BridgeColumnHandle> read = new ArrayList<>();
        List<Function<SourcePage, Block>> channels = new ArrayList<>();
        Map<BridgeColumnHandle, BridgeColumnHandle> sameValues = new HashMap<>();
        for (BridgeColumnHandle channel : scan.channels()) {
            Optional<FileColumn> found = channel.isData()
                    ? FileColumn.find(own, channel.name())
                    : Optional.of(new FileColumn(channel.name(), Optional.empty(), Map.of()));
            channels.add(FileValues.channel(found, channel.type(), read.size()));
            found.ifPresent(column -> read.add(new BridgeColumnHandle(column.name(), column.typeIn(channel.type()), channel.kind(), channel.ordinal())));
        }
        Function<BridgeColumnHandle, Optional<BridgeColumnHandle>> storedAs = column -> column.isData()
                ? FileColumn.find(own, column.name()).filter(FileColumn::sameValues).map(each -> new BridgeColumnHandle(each.name(), column.type(), column.kind(), column.ordinal()))
                : Optional.of(column);
        FileScan stored = new FileScan(scan.session(), scan.files(), scan.timeZone(), read, () -> stored(scan.predicate().get(), storedAs), scan.reached());
        return new ByIdPageSource(open.apply(stored, files), channels);
    }

    /** What of a predicate holds for columns whose values are read as they are. */
    private static TupleDomain<BridgeColumnHandle> stored(TupleDomain<BridgeColumnHandle> predicate, Function<BridgeColumnHandle, Optional<BridgeColumnHandle>> storedAs)
    {
        if (predicate.isNone()) {
            return predicate;
        }
        Map<BridgeColumnHandle, Domain> domains = new HashMap<>();
        predicate.getDomains().orElseThrow().forEach((column, domain) -> storedAs.apply(column).ifPresent(each -> domains.put(each, domain)));
        return TupleDomain.withColumnDomains(domains);
    }

    @Override
    public SourcePage getNextSourcePage()
    {
        SourcePage page = source.getNextSourcePage();
        if (page == null) {
            return null;
        }
        Block[] blocks = channels.stream().map(channel -> channel.apply(page)).toArray(Block[]::new);
        return SourcePage.create(new Page(page.getPositionCount(), blocks));
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
