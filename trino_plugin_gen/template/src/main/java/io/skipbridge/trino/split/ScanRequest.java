package io.skipbridge.trino.split;

import io.skipbridge.trino.BridgeSession;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.wire.PlanRequest;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.Constraint;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * What one scan asks of the planner: the table, all that is known of the predicate, and how wide the cluster is.
 *
 * @param hint a predicate beside the one that the planner enforces; it narrows the plan
 * @param planner the process that answered for this query before
 */
record ScanRequest(PlanRequest plan, String hint, Optional<String> planner)
{
    /**
     * Whatever the engine may have put between a top-N and its scan by now takes away none of the first rows, so that it need not be known.
     *
     * @param joined whether joins may filter the scan: then no number of its rows suffices
     */
    static ScanRequest of(ConnectorContext context, ConnectorSession session, BridgeTableHandle table, Constraint constraint, boolean joined)
    {
        boolean ordered = table.whole() && !table.order().isEmpty();
        boolean stops = ordered || (table.whole() && !joined);
        Map<String, String> options = new HashMap<>(PlanRequest.zoneOption(table.timeZone()));
        options.put("pruning_enabled", Boolean.toString(BridgeSession.pruningEnabled(session)));
        options.put("workers", Integer.toString(context.getNodeManager().getWorkerNodes().size()));
        PlanRequest plan = new PlanRequest(
                table.schemaName(),
                table.tableName(),
                session.getQueryId(),
                context.getSpiVersion(),
                (table.enforced() || ordered ? table.filter() : table.filter().and(constraint)).written(),
                List.of(),
                stops ? table.limit() : OptionalLong.empty(),
                options,
                stops ? table.order() : List.of(),
                table.enforced());
        return new ScanRequest(plan, table.enforced() ? table.hint().and(constraint).written() : "", table.planner());
    }
}
