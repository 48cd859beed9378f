package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryWriter;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * A scan's request for a plan.
 *
 * @param order with a limit: the first rows in this order are wanted, not any
 * @param enforced whether the engine dropped its own filter, because the planner said that it enforces the predicate
 * @param readVersion empty for the newest; docs/reference/wire.md lists the others
 * @param snapshotId from an earlier reply about this table and version; empty leaves the choice to the planner
 * @param dynamicFilterColumns columns for which dynamic filters may follow
 * @param firstSplits the reply may bring a first batch of at most so many splits; 0 for none
 */
public record PlanRequest(
        String schemaName,
        String tableName,
        String queryId,
        String engineVersion,
        String predicate,
        List<String> projectedColumns,
        OptionalLong limit,
        Map<String, String> options,
        List<SortKey> order,
        boolean enforced,
        String readVersion,
        String snapshotId,
        List<String> dynamicFilterColumns,
        int firstSplits)
{
    private static final String TIME_ZONE = "timestamp_zone";
    private static final String TABLE_COLUMNS = "table_columns";

    public PlanRequest(
            String schemaName,
            String tableName,
            String queryId,
            String engineVersion,
            String predicate,
            List<String> projectedColumns,
            OptionalLong limit,
            Map<String, String> options,
            String readVersion)
    {
        this(schemaName, tableName, queryId, engineVersion, predicate, projectedColumns, limit, options, List.of(), false, readVersion, "", List.of(), 0);
    }

    /** Options of a scan that reads UTC timestamps in this zone, of a table that was analysed with these columns. */
    public static Map<String, String> options(String timeZone, String tableColumns)
    {
        Map<String, String> options = new HashMap<>();
        if (!timeZone.equals("UTC")) {
            options.put(TIME_ZONE, timeZone);
        }
        options.put(TABLE_COLUMNS, tableColumns);
        return options;
    }

    void write(BinaryWriter writer)
    {
        writer.stringField(1, schemaName);
        writer.stringField(2, tableName);
        writer.stringField(3, queryId);
        writer.stringField(4, "trino");
        writer.stringField(5, engineVersion);
        writer.stringField(6, predicate);
        writer.stringListField(7, projectedColumns);
        if (limit.isPresent()) {
            writer.i64Field(8, limit.getAsLong());
        }
        writer.stringMapField(9, options);
        writer.structListField(10, order, key -> key.write(writer));
        writer.boolField(11, enforced);
        writer.stringField(12, readVersion);
        writer.stringField(13, snapshotId);
        writer.i32Field(14, Health.PROTOCOL);
        writer.stringListField(15, dynamicFilterColumns);
        writer.i32Field(16, firstSplits);
        writer.stop();
    }
}
