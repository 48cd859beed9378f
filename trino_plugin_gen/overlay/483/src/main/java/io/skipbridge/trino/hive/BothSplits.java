package io.skipbridge.trino.hive;

import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplitManager;
import io.trino.spi.connector.ConnectorSplitSource;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.SchemaTableName;

import java.util.Set;
import java.util.function.Function;

/**
 * Splits of the side that the table's handle belongs to.
 *
 * @param changed what a transaction has changed: of that a statement reads natively only the tables that it writes itself
 */
record BothSplits(ConnectorSplitManager bridge, ConnectorSplitManager hive, Function<ConnectorTransactionHandle, Set<SchemaTableName>> changed)
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
        if (table instanceof BridgeTableHandle own) {
            return bridge.getSplits(transaction, session, changed.apply(transaction).contains(own.name()) ? own.fresh() : own, dynamicFilterColumns, constraint);
        }
        return hive.getSplits(transaction, session, table, dynamicFilterColumns, constraint);
    }
}
