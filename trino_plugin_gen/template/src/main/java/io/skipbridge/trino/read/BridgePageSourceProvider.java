package io.skipbridge.trino.read;

import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.BridgeSplit;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplit;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.DynamicFilter;

import java.util.List;

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
            List<ColumnHandle> columns,
            DynamicFilter dynamicFilter)
    {
        return sources.create(session, (BridgeSplit) split, (BridgeTableHandle) table, columns, dynamicFilter::getCurrentPredicate);
    }
}
