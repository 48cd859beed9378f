package io.skipbridge.trino.metadata;

import io.airlift.log.Logger;
import io.skipbridge.trino.BridgeSession;
import io.skipbridge.trino.Planners;
import io.skipbridge.trino.wire.AggregateRequest;
import io.skipbridge.trino.wire.AggregateResult;
import io.skipbridge.trino.wire.PlanRequest;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorSession;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Requests statistics and aggregates from the planner, for the queries of one transaction. The engine repeats its requests while it plans, so
 * each is sent once per query. All requests of a query about a table go to one process, because the results hold for its file set.
 */
class PlannerStatistics
{
    private static final Logger log = Logger.get(PlannerStatistics.class);

    private record AggregateKey(String queryId, TableVersion table, ScanFilter filter, List<AggregateRequest.Aggregate> aggregates, List<String> groupBy) {}

    private record EstimateKey(String queryId, TableVersion table, ScanFilter filter) {}

    private record ScanKey(String queryId, TableVersion table) {}

    private final Planners planners;
    private final String timeZone;
    private final Map<AggregateKey, AggregateResult> results = new ConcurrentHashMap<>();
    private final Map<EstimateKey, CompletableFuture<Optional<TableDescription>>> estimates = new ConcurrentHashMap<>();
    private final Map<ScanKey, String> endpoints = new ConcurrentHashMap<>();

    PlannerStatistics(Planners planners, String timeZone)
    {
        this.planners = planners;
        this.timeZone = timeZone;
    }

    /** Asks whether every row of every remaining file satisfies the filter. */
    AggregateResult enforces(ConnectorSession session, BridgeTableHandle table, ScanFilter filter)
    {
        return aggregate(session, table, filter, List.of(), List.of());
    }

    /** After a failure the result is empty: the scan meets the failure again and reports it. */
    AggregateResult aggregate(ConnectorSession session, BridgeTableHandle table, ScanFilter filter, List<AggregateRequest.Aggregate> aggregates, List<String> groupBy)
    {
        return results.computeIfAbsent(new AggregateKey(session.getQueryId(), table.version(), filter, aggregates, groupBy), _ -> {
            AggregateRequest wanted = new AggregateRequest(aggregates, groupBy, BridgeSession.metadataWaitMillis(session));
            try {
                AggregateResult result = planners.call(session.getQueryId(), endpoint(session, table), client -> client.aggregate(request(session, table, filter), wanted));
                endpoints.putIfAbsent(new ScanKey(session.getQueryId(), table.version()), result.endpoint());
                log.debug("query %s: %s %s by %s: enforced %s, answered %s %s", session.getQueryId(), table.version(), aggregates, groupBy, result.enforced(), result.answered(), result.reason());
                return result;
            }
            catch (TrinoException e) {
                log.debug(e, "query %s: no answer about %s", session.getQueryId(), table.version());
                return new AggregateResult("", false, false, "FAILED", "", 0);
            }
        });
    }

    Optional<TableDescription> estimate(ConnectorSession session, BridgeTableHandle table, ScanFilter filter)
    {
        return requestEstimate(session, table, filter).join();
    }

    /** Requests an estimate while the engine plans on, because it will ask for it. */
    CompletableFuture<Optional<TableDescription>> requestEstimate(ConnectorSession session, BridgeTableHandle table, ScanFilter filter)
    {
        return estimates.computeIfAbsent(
                new EstimateKey(session.getQueryId(), table.version(), filter),
                _ -> CompletableFuture.supplyAsync(() -> fetchEstimate(session, table, filter), Thread::startVirtualThread));
    }

    private Optional<TableDescription> fetchEstimate(ConnectorSession session, BridgeTableHandle table, ScanFilter filter)
    {
        try {
            return Optional.of(planners.call(session.getQueryId(), endpoint(session, table), client -> client.getStatistics(request(session, table, filter))));
        }
        catch (TrinoException e) {
            log.debug(e, "query %s: no statistics of %s", session.getQueryId(), table.version());
            return Optional.empty();
        }
    }

    private Optional<String> endpoint(ConnectorSession session, BridgeTableHandle table)
    {
        return Optional.ofNullable(endpoints.get(new ScanKey(session.getQueryId(), table.version()))).filter(known -> !known.isEmpty());
    }

    private PlanRequest request(ConnectorSession session, BridgeTableHandle table, ScanFilter filter)
    {
        return new PlanRequest(
                table.schemaName(),
                table.tableName(),
                session.getQueryId(),
                "",
                filter.written(),
                List.of(),
                OptionalLong.empty(),
                PlanRequest.options(timeZone, table.tableColumns()),
                List.of(),
                false,
                table.readVersion(),
                table.snapshotId(),
                List.of(),
                0);
    }
}
