package io.skipbridge.hive.wire;

import java.util.Collections;
import java.util.List;
import java.util.Objects;

/** A scan's request to the planner. Equal requests have equal answers. */
public final class FileRequest
{
    private final String schema;
    private final String table;
    private final String queryId;
    private final String engineVersion;
    private final String predicate;
    private final List<String> columns;
    private final String tableColumns;

    /**
     * @param predicate JSON, see docs/reference/predicates.md
     * @param columns the columns that the scan reads
     * @param tableColumns all columns of the table in order, with commas, as the query was compiled; empty if unknown
     */
    public FileRequest(
            String schema,
            String table,
            String queryId,
            String engineVersion,
            String predicate,
            List<String> columns,
            String tableColumns)
    {
        this.schema = schema;
        this.table = table;
        this.queryId = queryId;
        this.engineVersion = engineVersion;
        this.predicate = predicate;
        this.columns = columns;
        this.tableColumns = tableColumns;
    }

    public String tableName()
    {
        return schema + "." + table;
    }

    public String queryId()
    {
        return queryId;
    }

    public String predicate()
    {
        return predicate;
    }

    void write(FrameWriter writer)
    {
        writer.stringField(1, schema);
        writer.stringField(2, table);
        writer.stringField(3, queryId);
        writer.stringField(4, "hive");
        writer.stringField(5, engineVersion);
        writer.stringField(6, predicate);
        writer.stringListField(7, columns);
        writer.stringMapField(9, tableColumns.isEmpty() ? Collections.emptyMap() : Collections.singletonMap("table_columns", tableColumns));
        writer.stringField(12, "");
        writer.stringField(13, "");
        writer.i32Field(14, PlannerClient.PROTOCOL);
        writer.stop();
    }

    @Override
    public boolean equals(Object other)
    {
        if (!(other instanceof FileRequest)) {
            return false;
        }
        FileRequest that = (FileRequest) other;
        return queryId.equals(that.queryId) && schema.equals(that.schema) && table.equals(that.table) && predicate.equals(that.predicate);
    }

    @Override
    public int hashCode()
    {
        return Objects.hash(queryId, schema, table, predicate);
    }
}
