package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.footer.SchemaCache;
import io.skipbridge.trino.read.storage.FileOpener;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * The context that all files of a page source share. The predicate grows with the dynamic filter.
 *
 * @param reached the largest window of the scan's page sources on this node
 * @param loaded paths of the columns that the engine loaded beyond a file's first row group
 */
record ScanContext(
        ConnectorSession session,
        FileOpener files,
        SchemaCache schemas,
        List<BridgeColumnHandle> channels,
        Supplier<TupleDomain<BridgeColumnHandle>> predicate,
        ParquetReaderOptions options,
        AtomicInteger reached,
        Set<String> loaded)
{
    AheadWindow newWindow()
    {
        return new AheadWindow(reached);
    }
}
