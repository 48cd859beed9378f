package io.skipbridge.trino.hive;

import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplitManager;
import io.trino.spi.connector.ConnectorSplitSource;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.DynamicFilter;

import java.util.function.BiFunction;

/**
 * Splits of the side that the table's handle belongs to.
 *
 * @param handleToRead the handle by which a transaction reads a native table
 */
record BothSplits(ConnectorSplitManager bridge, ConnectorSplitManager hive, BiFunction<ConnectorTransactionHandle, BridgeTableHandle, BridgeTableHandle> handleToRead)
        implements ConnectorSplitManager
{
    @Override
    public ConnectorSplitSource getSplits(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorTableHandle table,
            DynamicFilter dynamicFilter,
            Constraint constraint)
    {
        if (table instanceof BridgeTableHandle own) {
            return bridge.getSplits(transaction, session, handleToRead.apply(transaction, own), dynamicFilter, constraint);
        }
        return hive.getSplits(transaction, session, table, dynamicFilter, constraint);
    }
}
