package io.skipbridge.trino.hive;

import io.trino.plugin.hive.HiveTableHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.Constraint;
import io.trino.spi.predicate.TupleDomain;

import java.util.HashMap;
import java.util.Map;

/**
 * A filter of a scan in Hive's columns.
 *
 * @param natives the scan's own column of each of Hive's
 */
record HiveConstraint(Constraint constraint, Map<ColumnHandle, ColumnHandle> natives)
{
    static HiveConstraint of(HiveTableHandle table, Constraint constraint)
    {
        Map<ColumnHandle, ColumnHandle> natives = new HashMap<>();
        constraint.getSummary().getDomains().orElse(Map.of()).keySet().forEach(column -> natives.put(HiveTables.column(table, column), column));
        TupleDomain<ColumnHandle> summary = constraint.getSummary().transformKeys(column -> HiveTables.column(table, column));
        Map<String, ColumnHandle> assignments = new HashMap<>(constraint.getAssignments());
        assignments.replaceAll((_, column) -> HiveTables.column(table, column));
        return new HiveConstraint(new Constraint(summary, constraint.getExpression(), assignments), natives);
    }
}
