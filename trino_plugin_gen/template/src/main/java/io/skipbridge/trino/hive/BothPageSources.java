package io.skipbridge.trino.hive;

import io.trino.plugin.hive.HiveTableHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplit;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.DynamicFilter;

import java.util.List;

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
            List<ColumnHandle> columns,
            DynamicFilter dynamicFilter)
    {
        return table instanceof HiveTableHandle hives
                ? hive.createPageSource(transaction, session, split, table, columns.stream().map(column -> HiveTables.column(hives, column)).toList(), dynamicFilter)
                : bridge.createPageSource(transaction, session, split, table, columns, dynamicFilter);
    }
}
