package io.skipbridge.trino.read;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.split.BridgeSplit;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplit;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.DynamicFilter;
import io.trino.spi.connector.EmptyPageSource;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/** Page sources of one scan. */
public class BridgePageSourceProvider
        implements ConnectorPageSourceProvider
{
    private final FileOpener files;
    private final ParquetReaderOptions options = ParquetReaderOptions.defaultOptions();
    private final Map<List<BridgeColumnHandle>, SchemaCache> schemas = new ConcurrentHashMap<>();

    BridgePageSourceProvider(FileOpener files)
    {
        this.files = files;
    }

    @Override
    public ConnectorPageSource createPageSource(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorSplit split,
            ConnectorTableHandle table,
            List<ColumnHandle> columns,
            DynamicFilter dynamicFilter)
    {
        return create(session, (BridgeSplit) split, (BridgeTableHandle) table, columns, dynamicFilter::getCurrentPredicate);
    }

    private ConnectorPageSource create(
            ConnectorSession session,
            BridgeSplit split,
            BridgeTableHandle table,
            List<ColumnHandle> columns,
            Supplier<TupleDomain<ColumnHandle>> joinFilter)
    {
        List<BridgeColumnHandle> channels = columns.stream().map(BridgeColumnHandle.class::cast).toList();
        Supplier<TupleDomain<BridgeColumnHandle>> predicate = new GrowingPredicate(table.predicate(), joinFilter);
        if (predicate.get().isNone()) {
            return new EmptyPageSource();
        }
        ScanContext scan = new ScanContext(session, files, schemas.computeIfAbsent(channels, SchemaCache::new), channels, predicate, options);
        List<PlannedFile> planned = split.files();
        return channels.stream().anyMatch(BridgeColumnHandle::isData)
                ? new BridgePageSource(scan, planned)
                : new CountPageSource(scan, planned);
    }
}
