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
 * A table and the part of the query that was pushed down into its scan.
 *
 * @param readVersion of the table; empty for the newest
 * @param snapshotId of the version that the query's metadata described; empty where the planner named none
 * @param tableColumns that the query was analysed with, as JSON: the planner plans under these or fails
 * @param filter skips files; the engine evaluates it too, unless it is enforced
 * @param enforced whether every row of every planned file satisfies {@code filter}, so that the engine dropped it
 * @param unenforcedConstraint arrived after {@code filter} was enforced: it skips files, and the engine evaluates it
 * @param timeZone in which UTC timestamps are read, INT96 among them
 * @param limit number of rows that suffice where nothing else filters the scan; with {@code order} the first of them
 * @param columns names of all columns that the scan reads, sorted; empty where they are not known
 * @param planner the process that holds the file set of this query
 * @param aggregateRows the result of an aggregation, so that no file is read
 */
public record BridgeTableHandle(
        String schemaName,
        String tableName,
        String readVersion,
        String snapshotId,
        String timeZone,
        String tableColumns,
        List<BridgeColumnHandle> partitionKeys,
        ScanFilter filter,
        boolean enforced,
        ScanFilter unenforcedConstraint,
        OptionalLong limit,
        List<SortKey> order,
        Optional<List<String>> columns,
        Optional<String> planner,
        Optional<AggregateRows> aggregateRows)
        implements ConnectorTableHandle
{
    public BridgeTableHandle
    {
        requireNonNull(schemaName, "schemaName is null");
        requireNonNull(tableName, "tableName is null");
        requireNonNull(readVersion, "readVersion is null");
        requireNonNull(snapshotId, "snapshotId is null");
        requireNonNull(timeZone, "timeZone is null");
        requireNonNull(tableColumns, "tableColumns is null");
        partitionKeys = List.copyOf(partitionKeys);
        requireNonNull(filter, "filter is null");
        requireNonNull(unenforcedConstraint, "unenforcedConstraint is null");
        requireNonNull(limit, "limit is null");
        order = List.copyOf(order);
        columns = columns.map(List::copyOf);
        requireNonNull(planner, "planner is null");
        requireNonNull(aggregateRows, "aggregateRows is null");
    }

    /** The whole of one version of a table. */
    static BridgeTableHandle all(TableVersion table, TableColumns columns, String timeZone)
    {
        return new BridgeTableHandle(
                table.name().getSchemaName(),
                table.name().getTableName(),
                table.readVersion(),
                columns.description().snapshotId(),
                timeZone,
                columns.description().compiledColumns(),
                columns.handles().values().stream().filter(column -> column.kind() == ColumnKind.PARTITION_KEY).toList(),
                ScanFilter.ALL,
                false,
                ScanFilter.ALL,
                OptionalLong.empty(),
                List.of(),
                Optional.empty(),
                Optional.empty(),
                Optional.empty());
    }

    public SchemaTableName name()
    {
        return new SchemaTableName(schemaName, tableName);
    }

    TableVersion version()
    {
        return new TableVersion(name(), readVersion);
    }

    /** The whole known predicate. */
    public TupleDomain<BridgeColumnHandle> predicate()
    {
        return filter.domains().intersect(unenforcedConstraint.domains());
    }

    /** Whether the engine keeps every row of the scan. */
    public boolean whole()
    {
        return unenforcedConstraint.isAll() && (enforced || filter.isAll());
    }

    /** Whether only conditions on single columns narrow the scan. */
    public boolean ofDomains()
    {
        return !reduced() && filter.conjuncts().isEmpty() && unenforcedConstraint.conjuncts().isEmpty();
    }

    /** Whether a limit or an aggregation was pushed down. */
    public boolean reduced()
    {
        return limit.isPresent() || aggregateRows.isPresent();
    }

    /** The same scan of the table as it is when the planner is asked, whatever its freshness. */
    public BridgeTableHandle fresh()
    {
        return new BridgeTableHandle(schemaName, tableName, version().fresh().readVersion(), "", timeZone, tableColumns, partitionKeys, filter, enforced, unenforcedConstraint, limit, order, columns, planner, aggregateRows);
    }

    BridgeTableHandle withFilter(ScanFilter newFilter, boolean newEnforced, Optional<String> newPlanner)
    {
        return new BridgeTableHandle(schemaName, tableName, readVersion, snapshotId, timeZone, tableColumns, partitionKeys, newFilter, newEnforced, unenforcedConstraint, limit, order, columns, newPlanner.or(() -> planner), aggregateRows);
    }

    BridgeTableHandle withUnenforcedConstraint(ScanFilter newConstraint)
    {
        return new BridgeTableHandle(schemaName, tableName, readVersion, snapshotId, timeZone, tableColumns, partitionKeys, filter, enforced, newConstraint, limit, order, columns, planner, aggregateRows);
    }

    BridgeTableHandle withLimit(long newLimit, List<SortKey> newOrder)
    {
        return new BridgeTableHandle(schemaName, tableName, readVersion, snapshotId, timeZone, tableColumns, partitionKeys, filter, enforced, unenforcedConstraint, OptionalLong.of(newLimit), newOrder, columns, planner, aggregateRows);
    }

    BridgeTableHandle withColumns(List<String> newColumns)
    {
        return new BridgeTableHandle(schemaName, tableName, readVersion, snapshotId, timeZone, tableColumns, partitionKeys, filter, enforced, unenforcedConstraint, limit, order, Optional.of(newColumns), planner, aggregateRows);
    }

    BridgeTableHandle withAggregateRows(AggregateRows newRows)
    {
        return new BridgeTableHandle(schemaName, tableName, readVersion, snapshotId, timeZone, tableColumns, partitionKeys, filter, enforced, unenforcedConstraint, limit, order, columns, planner, Optional.of(newRows));
    }

    @Override
    public String toString()
    {
        StringBuilder text = new StringBuilder(version().toString());
        if (!filter.isAll()) {
            text.append(enforced ? " enforced constraint on " : " constraint on ").append(filter);
        }
        if (!unenforcedConstraint.isAll()) {
            text.append(" constraint on ").append(unenforcedConstraint);
        }
        if (limit.isPresent() && order.isEmpty()) {
            text.append(" limit ").append(limit.getAsLong());
        }
        else if (limit.isPresent()) {
            text.append(" first ").append(limit.getAsLong()).append(" by ").append(String.join(", ", order.stream().map(SortKey::toString).toList()));
        }
        aggregateRows.ifPresent(known -> text.append(" answered from statistics: ").append(known.text()));
        return text.toString();
    }
}
