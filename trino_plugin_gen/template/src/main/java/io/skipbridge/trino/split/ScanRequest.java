package io.skipbridge.trino.split;

import io.skipbridge.trino.BridgeSession;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.wire.PlanRequest;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.Constraint;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;

/**
 * One scan's request to the planner: the table, the known predicate and the number of workers.
 *
 * @param unenforcedConstraint a predicate beside the enforced one; it skips more files
 * @param planner the process that replied to this query before
 */
record ScanRequest(PlanRequest plan, String unenforcedConstraint, Optional<String> planner, List<BridgeColumnHandle> partitionKeys)
{
    /**
     * Nothing that the engine puts between a top-N and its scan takes away one of the first rows.
     *
     * @param dynamicFilterColumns columns by which joins may filter the scan. If there are any, no number of its rows suffices
     */
    static ScanRequest of(ConnectorContext context, ConnectorSession session, BridgeTableHandle table, Constraint constraint, Set<ColumnHandle> dynamicFilterColumns)
    {
        boolean joined = !dynamicFilterColumns.isEmpty();
        boolean ordered = table.whole() && !table.order().isEmpty();
        boolean stops = ordered || (table.whole() && !joined);
        String unenforced = table.enforced() ? table.unenforcedConstraint().and(constraint).written() : "";
        Map<String, String> options = PlanRequest.options(table.timeZone(), table.tableColumns());
        options.put("pruning_enabled", Boolean.toString(BridgeSession.pruningEnabled(session)));
        options.put("workers", Integer.toString(context.getNodeManager().getWorkerNodes().size()));
        PlanRequest plan = new PlanRequest(
                table.schemaName(),
                table.tableName(),
                session.getQueryId(),
                context.getSpiVersion(),
                (table.enforced() || ordered ? table.filter() : table.filter().and(constraint)).written(),
                table.columns().map(ScanRequest::sent).orElse(List.of()),
                stops ? table.limit() : OptionalLong.empty(),
                options,
                stops ? table.order() : List.of(),
                table.enforced(),
                table.readVersion(),
                table.snapshotId(),
                dynamicFilterColumns.stream().map(column -> ((BridgeColumnHandle) column).name()).sorted().toList(),
                // else these predicates come before the first batch
                unenforced.isEmpty() && (!joined || BridgeSession.dynamicFilterWaitMillis(session).isEmpty()) ? SplitLoader.BATCH_SPLITS : 0);
        return new ScanRequest(plan, unenforced, table.planner(), table.partitionKeys());
    }

    /** No name at all means any column, so that a scan of none sends an empty one. */
    private static List<String> sent(List<String> columns)
    {
        return columns.isEmpty() ? List.of("") : columns;
    }
}
