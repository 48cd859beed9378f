package io.skipbridge.trino.hive;

import io.trino.plugin.hive.HiveTableHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplit;
import io.trino.spi.connector.ConnectorTableCredentials;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.DynamicFilter;
import io.trino.spi.connector.MemoryContext;

import java.util.List;
import java.util.Optional;

/** Page sources of the side that the table's handle belongs to. A statement that changes a table scans Hive's handle for native columns. */
record BothPageSources(ConnectorPageSourceProvider bridge, ConnectorPageSourceProvider hive)
        implements ConnectorPageSourceProvider
{
    @Override
    public ConnectorPageSource createPageSource(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorSplit split,
            ConnectorTableHandle table,
            Optional<ConnectorTableCredentials> credentials,
            List<ColumnHandle> columns,
            DynamicFilter dynamicFilter,
            MemoryContext memory)
    {
        if (table instanceof HiveTableHandle hives) {
            List<ColumnHandle> own = columns.stream().map(column -> HiveTables.column(hives, column)).toList();
            return hive.createPageSource(transaction, session, split, table, credentials, own, dynamicFilter, memory);
        }
        return bridge.createPageSource(transaction, session, split, table, credentials, columns, dynamicFilter, memory);
    }

    @Override
    public long getMemoryUsage()
    {
        return bridge.getMemoryUsage() + hive.getMemoryUsage();
    }
}
