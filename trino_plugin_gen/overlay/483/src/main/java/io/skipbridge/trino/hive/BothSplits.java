package io.skipbridge.trino.hive;

import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplitManager;
import io.trino.spi.connector.ConnectorSplitSource;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.Constraint;

import java.util.Set;

/** Splits of the side that the table's handle belongs to. */
record BothSplits(ConnectorSplitManager bridge, ConnectorSplitManager hive)
        implements ConnectorSplitManager
{
    @Override
    public ConnectorSplitSource getSplits(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorTableHandle table,
            Set<ColumnHandle> dynamicFilterColumns,
            Constraint constraint)
    {
        return (table instanceof BridgeTableHandle ? bridge : hive).getSplits(transaction, session, table, dynamicFilterColumns, constraint);
    }
}
