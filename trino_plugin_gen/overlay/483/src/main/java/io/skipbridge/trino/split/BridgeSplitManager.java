package io.skipbridge.trino.split;

import io.skipbridge.trino.BridgeSession;
import io.skipbridge.trino.Planners;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplitManager;
import io.trino.spi.connector.ConnectorSplitSource;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.FixedSplitSource;

import java.util.OptionalLong;
import java.util.Set;

/** Opens a plan per scan and starts its loader, without waiting for either. */
public class BridgeSplitManager
        implements ConnectorSplitManager
{
    private static final int MAX_BUFFERED_SPLITS = 10_000;

    private final Planners planners;
    private final ConnectorContext context;
    private final SplitPlacement placement;

    public BridgeSplitManager(Planners planners, ConnectorContext context, SplitPlacement placement)
    {
        this.planners = planners;
        this.context = context;
        this.placement = placement;
    }

    @Override
    public ConnectorSplitSource getSplits(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorTableHandle table,
            Set<ColumnHandle> dynamicFilterColumns,
            Constraint constraint)
    {
        BridgeTableHandle handle = (BridgeTableHandle) table;
        if (handle.aggregateRows().isPresent()) {
            return new FixedSplitSource(BridgeSplit.empty());
        }
        ScanRequest request = ScanRequest.of(context, session, handle, constraint, dynamicFilterColumns);
        OptionalLong wait = dynamicFilterColumns.isEmpty() ? OptionalLong.of(0) : BridgeSession.dynamicFilterWaitMillis(session);
        DynamicFilterTracker dynamicFilter = new DynamicFilterTracker(wait);
        SplitQueue queue = new SplitQueue(MAX_BUFFERED_SPLITS, placement);
        SplitLoader loader = new SplitLoader(planners, context.getTypeManager(), request, dynamicFilter, queue);
        Thread.ofVirtual().name("skipbridge-splits-" + session.getQueryId()).start(loader);
        return new BridgeSplitSource(queue, loader, dynamicFilter);
    }
}
