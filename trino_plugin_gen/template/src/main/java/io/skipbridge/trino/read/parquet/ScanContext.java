package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.footer.SchemaCache;
import io.skipbridge.trino.read.storage.FileOpener;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

/**
 * The context that all Parquet files of a page source share.
 *
 * @param loaded paths of the columns that the engine loaded beyond a file's first row group
 */
public record ScanContext(FileScan scan, SchemaCache schemas, ParquetReaderOptions options, Set<String> loaded)
{
    ConnectorSession session()
    {
        return scan.session();
    }

    FileOpener files()
    {
        return scan.files();
    }

    List<BridgeColumnHandle> channels()
    {
        return scan.channels();
    }

    Supplier<TupleDomain<BridgeColumnHandle>> predicate()
    {
        return scan.predicate();
    }
}
