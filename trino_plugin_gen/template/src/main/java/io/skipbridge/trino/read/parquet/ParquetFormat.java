package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.FormatReader;
import io.skipbridge.trino.read.footer.SchemaCache;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.spi.connector.ConnectorPageSource;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Parquet, by Trino's own reader. The page sources of a scan share a schema cache. */
public final class ParquetFormat
        implements FormatReader
{
    private final ParquetReaderOptions options = ParquetReaderOptions.defaultOptions();
    private final Set<String> loaded = ConcurrentHashMap.newKeySet();
    private final Map<List<BridgeColumnHandle>, SchemaCache> schemas = new ConcurrentHashMap<>();

    @Override
    public ConnectorPageSource open(FileScan scan, List<PlannedFile> planned)
    {
        ScanContext context = context(scan);
        return scan.dataColumns().isEmpty() ? new CountPageSource(context, planned) : new BridgePageSource(context, planned);
    }

    public ScanContext context(FileScan scan)
    {
        SchemaCache schema = schemas.computeIfAbsent(scan.channels(), key -> new SchemaCache(key, scan.timeZone()));
        return new ScanContext(scan, schema, options, loaded);
    }
}
