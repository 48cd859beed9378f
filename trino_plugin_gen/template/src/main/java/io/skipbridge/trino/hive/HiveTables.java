package io.skipbridge.trino.hive;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.trino.plugin.hive.HiveColumnHandle;
import io.trino.plugin.hive.HiveTableHandle;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.ConnectorMetadata;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.ConstraintApplicationResult;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.connector.TableNotFoundException;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

import static io.skipbridge.trino.BridgeErrorCode.OPERATION_BLOCKED;
import static io.trino.plugin.hive.HiveColumnHandle.fileModifiedTimeColumnHandle;
import static io.trino.plugin.hive.HiveColumnHandle.fileSizeColumnHandle;
import static io.trino.plugin.hive.HiveColumnHandle.partitionColumnHandle;
import static io.trino.plugin.hive.HiveColumnHandle.pathColumnHandle;
import static java.util.Objects.requireNonNull;

/** Finds Hive's handle of a table that has a native one. Within a transaction Hive's metadata asks the metastore once for each table. */
final class HiveTables
{
    private static final String BUCKET = "$bucket";
    private static final List<HiveColumnHandle> HIDDEN = List.of(pathColumnHandle(), fileSizeColumnHandle(), fileModifiedTimeColumnHandle(), partitionColumnHandle());

    private final ConnectorMetadata hive;

    HiveTables(ConnectorMetadata hive)
    {
        this.hive = hive;
    }

    /** Empty: there is no table of this name. */
    Optional<HiveTableHandle> find(ConnectorSession session, SchemaTableName name)
    {
        return Optional.ofNullable((HiveTableHandle) hive.getTableHandle(session, name, Optional.empty(), Optional.empty()));
    }

    boolean bucketed(ConnectorSession session, HiveTableHandle table)
    {
        return hive.getColumnHandles(session, table).containsKey(BUCKET);
    }

    /** Whether both sides give the table the same columns of the same types in the same order. */
    static boolean sameColumns(HiveTableHandle table, List<ColumnMetadata> columns)
    {
        List<String> hives = Stream.concat(table.getDataColumns().stream(), table.getPartitionColumns().stream())
                .map(column -> column.getName() + " " + column.getType().getDisplayName())
                .toList();
        return hives.equals(columns.stream().filter(column -> !column.isHidden()).map(column -> column.getName() + " " + column.getType().getDisplayName()).toList());
    }

    HiveTableHandle get(ConnectorSession session, BridgeTableHandle table)
    {
        return find(session, table.name()).orElseThrow(() -> new TableNotFoundException(table.name()));
    }

    /** The table for a statement that changes it, under all conditions of the native handle. A condition that Hive's handle cannot hold is an error. */
    HiveTableHandle target(ConnectorSession session, BridgeTableHandle table)
    {
        HiveTableHandle whole = get(session, table);
        if (table.ofDomains() && table.predicate().isAll()) {
            return whole;
        }
        return Optional.of(new Constraint(table.predicate().transformKeys(column -> column(whole, column))))
                .filter(_ -> table.ofDomains())
                .flatMap(constraint -> hive.applyFilter(session, whole, constraint))
                .filter(result -> result.getRemainingFilter().isAll())
                .map(result -> (HiveTableHandle) result.getHandle())
                .orElseThrow(() -> new TrinoException(OPERATION_BLOCKED, "A scan of %s is no target of a statement: %s".formatted(table.name(), table)));
    }

    /** Hive's own answer to a filter, for a scan that keeps its native columns. */
    Optional<ConstraintApplicationResult<ConnectorTableHandle>> filter(ConnectorSession session, HiveTableHandle table, Constraint constraint)
    {
        HiveConstraint converted = HiveConstraint.of(table, constraint);
        return hive.applyFilter(session, table, converted.constraint()).map(result -> new ConstraintApplicationResult<>(
                result.getHandle(),
                result.getRemainingFilter().transformKeys(column -> requireNonNull(converted.natives().get(column), "column is unknown")),
                result.getRemainingExpression().orElseGet(constraint::getExpression),
                result.isPrecalculateStatistics()));
    }

    /** Hive's column of a native one; Hive's own as they are. No metastore is asked, so that a worker may call it. */
    static ColumnHandle column(HiveTableHandle table, ColumnHandle column)
    {
        if (!(column instanceof BridgeColumnHandle own)) {
            return column;
        }
        return Stream.of(table.getDataColumns(), table.getPartitionColumns(), HIDDEN)
                .flatMap(List::stream)
                .filter(hives -> hives.getName().equals(own.name()) && hives.getType().equals(own.type()))
                .findFirst()
                .orElseThrow(() -> new TrinoException(OPERATION_BLOCKED, "Column %s is another one in the metastore now. Run the statement again".formatted(own)));
    }

    /** The table with the scan's conditions on partition keys, for estimates alone. */
    ConnectorTableHandle partitions(ConnectorSession session, BridgeTableHandle table)
    {
        HiveTableHandle whole = get(session, table);
        Map<String, ColumnHandle> columns = hive.getColumnHandles(session, whole);
        TupleDomain<ColumnHandle> keys = table.predicate()
                .filter((column, _) -> column.kind() == ColumnKind.PARTITION_KEY && columns.containsKey(column.name()))
                .transformKeys(column -> columns.get(column.name()));
        return hive.applyFilter(session, whole, new Constraint(keys)).map(ConstraintApplicationResult::getHandle).orElse(whole);
    }
}
