package io.skipbridge.trino.read;

import io.skipbridge.trino.metadata.AggregatePages;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.FormatReader;
import io.skipbridge.trino.read.page.ChainedPageSource;
import io.skipbridge.trino.read.page.RowFilterPageSource;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.BridgeSplit;
import io.skipbridge.trino.split.FileFormat;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.EmptyPageSource;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Creates the page sources of one scan, each with the reader for its files' format. */
final class PageSources
{
    private final FileOpener files;
    private final ReadSettings settings;
    private final AtomicInteger reached = new AtomicInteger();
    private final Map<FileFormat, FormatReader> readers = new ConcurrentHashMap<>();

    PageSources(FileOpener files, ReadSettings settings)
    {
        this.files = files;
        this.settings = settings;
    }

    ConnectorPageSource create(
            ConnectorSession session,
            BridgeSplit split,
            BridgeTableHandle table,
            List<ColumnHandle> columns,
            Supplier<TupleDomain<ColumnHandle>> dynamicFilter)
    {
        if (table.aggregateRows().isPresent()) {
            return AggregatePages.source(table.aggregateRows().get(), columns);
        }
        TupleDomain<BridgeColumnHandle> rowFilter = split.rowFilter().transformKeys(column -> sameColumn(columns, column).orElse(column));
        List<BridgeColumnHandle> channels = Stream.concat(
                        columns.stream().map(BridgeColumnHandle.class::cast),
                        rowFilter.getDomains().map(Map::keySet).orElse(Set.of()).stream().filter(column -> !columns.contains(column)))
                .toList();
        Supplier<TupleDomain<BridgeColumnHandle>> predicate = new GrowingPredicate(table.predicate(), dynamicFilter);
        if (predicate.get().isNone() || rowFilter.isNone()) {
            return new EmptyPageSource();
        }
        FileScan scan = new FileScan(session, files.ofSplit(), DateTimeZone.forID(table.timeZone()), channels, predicate, reached);
        List<PlannedFile> planned = split.files();
        List<ConnectorPageSource> sources = new ArrayList<>();
        planned.stream().collect(Collectors.groupingBy(FileFormat::of, () -> new EnumMap<>(FileFormat.class), Collectors.toList())).forEach((format, ofFormat) -> {
            FormatReader reader = readers.computeIfAbsent(format, key -> FormatReaders.of(key, settings));
            sources.add(reader.open(scan, ofFormat));
        });
        ConnectorPageSource source = sources.size() == 1 ? sources.getFirst() : new ChainedPageSource(sources);
        return rowFilter.isAll() ? source : new RowFilterPageSource(source, channels, columns.size(), rowFilter);
    }

    /** The engine's handle of a column that the planner named. */
    private static Optional<BridgeColumnHandle> sameColumn(List<ColumnHandle> columns, BridgeColumnHandle named)
    {
        return columns.stream()
                .map(BridgeColumnHandle.class::cast)
                .filter(column -> column.kind() == named.kind() && column.name().equals(named.name()) && column.type().equals(named.type()))
                .findFirst();
    }
}
