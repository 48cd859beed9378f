package io.skipbridge.trino.read;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.function.Supplier;

/** What all files of one page source share; the predicate grows while joins learn what they keep. */
record ScanContext(
        ConnectorSession session,
        FileOpener files,
        SchemaCache schemas,
        List<BridgeColumnHandle> channels,
        Supplier<TupleDomain<BridgeColumnHandle>> predicate,
        ParquetReaderOptions options) {}
