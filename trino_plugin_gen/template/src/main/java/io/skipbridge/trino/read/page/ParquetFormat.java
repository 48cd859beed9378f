package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.footer.SchemaCache;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** Parquet, by Trino's own reader. The page sources of a scan share a schema cache. */
final class ParquetFormat
        implements FormatReader
{
    private final FileOpener files;
    private final ParquetReaderOptions options = ParquetReaderOptions.defaultOptions();
    private final AtomicInteger reached = new AtomicInteger();
    private final Set<String> loaded = ConcurrentHashMap.newKeySet();
    private final Map<List<BridgeColumnHandle>, SchemaCache> schemas = new ConcurrentHashMap<>();

    ParquetFormat(FileOpener files)
    {
        this.files = files;
    }

    @Override
    public ConnectorPageSource open(
            ConnectorSession session,
            DateTimeZone timeZone,
            List<BridgeColumnHandle> channels,
            Supplier<TupleDomain<BridgeColumnHandle>> predicate,
            List<PlannedFile> planned)
    {
        ScanContext scan = scan(session, timeZone, channels, predicate);
        return channels.stream().anyMatch(BridgeColumnHandle::isData)
                ? new BridgePageSource(scan, planned)
                : new CountPageSource(scan, planned);
    }

    /** The context of a scan that skips no row. */
    ScanContext unfiltered(ConnectorSession session, DateTimeZone timeZone, List<BridgeColumnHandle> channels)
    {
        return scan(session, timeZone, channels, TupleDomain::all);
    }

    private ScanContext scan(ConnectorSession session, DateTimeZone timeZone, List<BridgeColumnHandle> channels, Supplier<TupleDomain<BridgeColumnHandle>> predicate)
    {
        SchemaCache schema = schemas.computeIfAbsent(channels, key -> new SchemaCache(key, timeZone));
        return new ScanContext(session, files, schema, channels, predicate, options, reached, loaded);
    }
}
