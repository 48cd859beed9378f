package io.skipbridge.trino.split;

import io.skipbridge.trino.BridgeSession;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.predicate.ExpressionWriter;
import io.skipbridge.trino.predicate.PredicateWriter;
import io.skipbridge.trino.wire.PlanRequest;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.Constraint;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeSet;

/** What one scan asks of the planner: the table, all that is known of the predicate, and how wide the cluster is. */
final class ScanRequest
{
    private ScanRequest() {}

    static PlanRequest of(ConnectorContext context, ConnectorSession session, BridgeTableHandle table, Constraint constraint)
    {
        TreeSet<String> conjuncts = new TreeSet<>(table.conjuncts());
        conjuncts.addAll(ExpressionWriter.conjuncts(constraint.getExpression(), constraint.getAssignments()));
        return new PlanRequest(
                table.schemaName(),
                table.tableName(),
                session.getQueryId(),
                context.getSpiVersion(),
                PredicateWriter.write(table.predicate(), List.copyOf(conjuncts)),
                List.of(),
                table.unfiltered() ? table.limit() : OptionalLong.empty(),
                Map.of(
                        "pruning_enabled", Boolean.toString(BridgeSession.pruningEnabled(session)),
                        "workers", Integer.toString(context.getNodeManager().getWorkerNodes().size())));
    }
}
