package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.footer.SchemaCache;
import io.skipbridge.trino.read.storage.FileOpener;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.function.Supplier;

/** The context that all files of a page source share. The predicate grows with the dynamic filter. */
record ScanContext(
        ConnectorSession session,
        FileOpener files,
        SchemaCache schemas,
        List<BridgeColumnHandle> channels,
        Supplier<TupleDomain<BridgeColumnHandle>> predicate,
        ParquetReaderOptions options) {}
