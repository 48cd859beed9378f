package io.skipbridge.trino.read;

import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.BridgeSplit;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplit;
import io.trino.spi.connector.ConnectorTableCredentials;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.DynamicFilter;

import java.util.List;
import java.util.Optional;

/** Creates the page sources of one scan. */
public class BridgePageSourceProvider
        implements ConnectorPageSourceProvider
{
    private final PageSources sources;

    BridgePageSourceProvider(FileOpener files, ReadSettings settings)
    {
        this.sources = new PageSources(files, settings);
    }

    @Override
    public ConnectorPageSource createPageSource(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorSplit split,
            ConnectorTableHandle table,
            Optional<ConnectorTableCredentials> credentials,
            List<ColumnHandle> columns,
            DynamicFilter dynamicFilter)
    {
        return sources.create(session, (BridgeSplit) split, (BridgeTableHandle) table, columns, dynamicFilter::getCurrentPredicate);
    }
}
