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

/** Finds Hive's handle of a table that has a native one. Within a transaction Hive's metadata asks the metastore once for each table. */
final class HiveTables
{
    private static final String BUCKET = "$bucket";

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

    /** The whole table for a statement that changes it. What was pushed down into the native handle has no place in Hive's. */
    HiveTableHandle whole(ConnectorSession session, BridgeTableHandle table)
    {
        if (!table.pure()) {
            throw new TrinoException(OPERATION_BLOCKED, "A scan of %s is no target of a statement: %s".formatted(table.name(), table));
        }
        return get(session, table);
    }

    ColumnHandle column(ConnectorSession session, ConnectorTableHandle table, BridgeColumnHandle column)
    {
        if (!(hive.getColumnHandles(session, table).get(column.name()) instanceof HiveColumnHandle found) || !found.getType().equals(column.type())) {
            throw new TrinoException(OPERATION_BLOCKED, "Column %s is another one in the metastore now. Run the statement again".formatted(column));
        }
        return found;
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
