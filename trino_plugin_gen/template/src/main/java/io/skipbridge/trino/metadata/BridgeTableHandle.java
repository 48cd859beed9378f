package io.skipbridge.trino.metadata;

import io.skipbridge.trino.wire.SortKey;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

import static java.util.Objects.requireNonNull;

/**
 * A table and what is known of the query's use of it.
 *
 * <p>{@code filter} is either a hint, with the whole predicate kept by the engine, or {@code enforced}: every row of every file planned
 * satisfies it, and the engine has dropped it. What comes after a filter was enforced is a hint again.
 *
 * @param timeZone in which timestamps that are kept in UTC are read, INT96 among them
 * @param limit so many rows suffice, of a scan that nothing else filters; with {@code order} the first of them
 * @param planner the process that holds the file set the query was answered for
 * @param answer rows that need no file at all
 */
public record BridgeTableHandle(
        String schemaName,
        String tableName,
        String timeZone,
        ScanFilter filter,
        boolean enforced,
        ScanFilter hint,
        OptionalLong limit,
        List<SortKey> order,
        Optional<String> planner,
        Optional<KnownRows> answer)
        implements ConnectorTableHandle
{
    public BridgeTableHandle
    {
        requireNonNull(schemaName, "schemaName is null");
        requireNonNull(tableName, "tableName is null");
        requireNonNull(timeZone, "timeZone is null");
        requireNonNull(filter, "filter is null");
        requireNonNull(hint, "hint is null");
        requireNonNull(limit, "limit is null");
        order = List.copyOf(order);
        requireNonNull(planner, "planner is null");
        requireNonNull(answer, "answer is null");
    }

    static BridgeTableHandle all(SchemaTableName name, String timeZone)
    {
        return new BridgeTableHandle(
                name.getSchemaName(),
                name.getTableName(),
                timeZone,
                ScanFilter.ALL,
                false,
                ScanFilter.ALL,
                OptionalLong.empty(),
                List.of(),
                Optional.empty(),
                Optional.empty());
    }

    SchemaTableName name()
    {
        return new SchemaTableName(schemaName, tableName);
    }

    /** All that is known of the rows wanted. */
    public TupleDomain<BridgeColumnHandle> predicate()
    {
        return filter.domains().intersect(hint.domains());
    }

    /** Whether the engine filters none of the rows that the scan gives it. */
    public boolean whole()
    {
        return hint.isAll() && (enforced || filter.isAll());
    }

    /** Whether the scan gives more than rows of files as they are. */
    public boolean reduced()
    {
        return limit.isPresent() || answer.isPresent();
    }

    BridgeTableHandle withFilter(ScanFilter newFilter, boolean newEnforced, Optional<String> newPlanner)
    {
        return new BridgeTableHandle(schemaName, tableName, timeZone, newFilter, newEnforced, hint, limit, order, newPlanner.or(() -> planner), answer);
    }

    BridgeTableHandle withHint(ScanFilter newHint)
    {
        return new BridgeTableHandle(schemaName, tableName, timeZone, filter, enforced, newHint, limit, order, planner, answer);
    }

    BridgeTableHandle withLimit(long newLimit, List<SortKey> newOrder)
    {
        return new BridgeTableHandle(schemaName, tableName, timeZone, filter, enforced, hint, OptionalLong.of(newLimit), newOrder, planner, answer);
    }

    BridgeTableHandle withAnswer(KnownRows newAnswer)
    {
        return new BridgeTableHandle(schemaName, tableName, timeZone, filter, enforced, hint, limit, order, planner, Optional.of(newAnswer));
    }

    @Override
    public String toString()
    {
        StringBuilder text = new StringBuilder(schemaName).append('.').append(tableName);
        if (!filter.isAll()) {
            text.append(enforced ? " enforced constraint on " : " constraint on ").append(filter);
        }
        if (!hint.isAll()) {
            text.append(" constraint on ").append(hint);
        }
        if (limit.isPresent() && order.isEmpty()) {
            text.append(" limit ").append(limit.getAsLong());
        }
        else if (limit.isPresent()) {
            text.append(" first ").append(limit.getAsLong()).append(" by ").append(String.join(", ", order.stream().map(SortKey::toString).toList()));
        }
        answer.ifPresent(known -> text.append(" answered from statistics: ").append(known.text()));
        return text.toString();
    }
}
