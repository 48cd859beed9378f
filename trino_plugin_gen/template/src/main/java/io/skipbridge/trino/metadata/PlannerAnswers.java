package io.skipbridge.trino.metadata;

import io.airlift.log.Logger;
import io.skipbridge.trino.BridgeSession;
import io.skipbridge.trino.Planners;
import io.skipbridge.trino.wire.Answer;
import io.skipbridge.trino.wire.PlanRequest;
import io.skipbridge.trino.wire.Question;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.SchemaTableName;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What the planner's statistics say, for the queries of one transaction. The engine's planning asks the same many times: the planner is asked
 * once a query. All questions of a query about a table go to one process, which holds the file set that its answers are true of.
 */
final class PlannerAnswers
{
    private static final Logger log = Logger.get(PlannerAnswers.class);

    private record Asked(String queryId, SchemaTableName table, ScanFilter filter, List<Question.Aggregate> aggregates, List<String> groupBy) {}

    private record Estimated(String queryId, SchemaTableName table, ScanFilter filter) {}

    private record Scanned(String queryId, SchemaTableName table) {}

    private final Planners planners;
    private final String timeZone;
    private final Map<Asked, Answer> answers = new ConcurrentHashMap<>();
    private final Map<Estimated, Optional<TableDescription>> estimates = new ConcurrentHashMap<>();
    private final Map<Scanned, String> endpoints = new ConcurrentHashMap<>();

    PlannerAnswers(Planners planners, String timeZone)
    {
        this.planners = planners;
        this.timeZone = timeZone;
    }

    /** Whether every row of every file that the filter leaves satisfies it. */
    Answer enforces(ConnectorSession session, SchemaTableName table, ScanFilter filter)
    {
        return ask(session, table, filter, List.of(), List.of());
    }

    /** A failure is no answer: the scan will meet it again, and tell. */
    Answer ask(ConnectorSession session, SchemaTableName table, ScanFilter filter, List<Question.Aggregate> aggregates, List<String> groupBy)
    {
        return answers.computeIfAbsent(new Asked(session.getQueryId(), table, filter, aggregates, groupBy), asked -> {
            Question question = new Question(aggregates, groupBy, BridgeSession.metadataWaitMillis(session));
            try {
                Answer answer = planners.call(session.getQueryId(), endpoint(session, table), client -> client.answer(request(session, table, filter), question));
                endpoints.putIfAbsent(new Scanned(session.getQueryId(), table), answer.endpoint());
                log.debug("query %s: %s %s by %s: enforced %s, answered %s %s", session.getQueryId(), table, aggregates, groupBy, answer.enforced(), answer.answered(), answer.reason());
                return answer;
            }
            catch (TrinoException e) {
                log.debug(e, "query %s: no answer about %s", session.getQueryId(), table);
                return new Answer("", false, false, "FAILED", "", 0);
            }
        });
    }

    Optional<TableDescription> estimate(ConnectorSession session, SchemaTableName table, ScanFilter filter)
    {
        return estimates.computeIfAbsent(new Estimated(session.getQueryId(), table, filter), _ -> {
            try {
                return Optional.of(planners.call(session.getQueryId(), endpoint(session, table), client -> client.getStatistics(request(session, table, filter))));
            }
            catch (TrinoException e) {
                log.debug(e, "query %s: no statistics of %s", session.getQueryId(), table);
                return Optional.empty();
            }
        });
    }

    private Optional<String> endpoint(ConnectorSession session, SchemaTableName table)
    {
        return Optional.ofNullable(endpoints.get(new Scanned(session.getQueryId(), table))).filter(known -> !known.isEmpty());
    }

    private PlanRequest request(ConnectorSession session, SchemaTableName table, ScanFilter filter)
    {
        return new PlanRequest(table.getSchemaName(), table.getTableName(), session.getQueryId(), "", filter.written(), List.of(), OptionalLong.empty(), PlanRequest.zoneOption(timeZone));
    }
}
