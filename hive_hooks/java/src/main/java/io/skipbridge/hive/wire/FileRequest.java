package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryWriter;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

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
    private final String declaration;
    private final String readVersion;
    private final String snapshotId;
    private final boolean readsViews;

    /**
     * @param predicate JSON, see docs/reference/predicates.md
     * @param columns the columns that the scan reads
     * @param tableColumns columns and partition keys of the table as the query was compiled, as JSON, see docs/reference/wire.md; empty if unknown
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
        this(schema, table, queryId, engineVersion, predicate, columns, tableColumns, "", "", "", false);
    }

    private FileRequest(
            String schema,
            String table,
            String queryId,
            String engineVersion,
            String predicate,
            List<String> columns,
            String tableColumns,
            String declaration,
            String readVersion,
            String snapshotId,
            boolean readsViews)
    {
        this.schema = schema;
        this.table = table;
        this.queryId = queryId;
        this.engineVersion = engineVersion;
        this.predicate = predicate;
        this.columns = columns;
        this.tableColumns = tableColumns;
        this.declaration = declaration;
        this.readVersion = readVersion;
        this.snapshotId = snapshotId;
        this.readsViews = readsViews;
    }

    /** The same of one version of the table, as an earlier answer named it. */
    public FileRequest of(String readVersion, String snapshotId)
    {
        return new FileRequest(schema, table, queryId, engineVersion, predicate, columns, tableColumns, declaration, readVersion, snapshotId, readsViews);
    }

    /** The same of files that are read as this JSON says, see docs/reference/wire.md; empty if that is not known, or if files say it themselves. */
    public FileRequest declaredAs(String declaration)
    {
        return new FileRequest(schema, table, queryId, engineVersion, predicate, columns, tableColumns, declaration, readVersion, snapshotId, readsViews);
    }

    /** The same of a scan that reads these columns alone, for which files of views may stand. */
    public FileRequest ofAllColumns(List<String> columns)
    {
        List<String> names = columns.isEmpty() ? Collections.singletonList("") : columns; // without a name all columns are meant
        return new FileRequest(schema, table, queryId, engineVersion, predicate, names, tableColumns, declaration, readVersion, snapshotId, true);
    }

    /** The same without its predicate. */
    public FileRequest whole()
    {
        return new FileRequest(schema, table, queryId, engineVersion, "", columns, tableColumns, declaration, readVersion, snapshotId, readsViews);
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

    /** @param firstSplits how many splits the answer may bring at once; 0 where none are asked for */
    void write(BinaryWriter writer, int firstSplits)
    {
        writer.stringField(1, schema);
        writer.stringField(2, table);
        writer.stringField(3, queryId);
        writer.stringField(4, "hive");
        writer.stringField(5, engineVersion);
        writer.stringField(6, predicate);
        writer.stringListField(7, columns);
        Map<String, String> options = new TreeMap<>();
        options.put("table_columns", tableColumns);
        options.put("declaration", declaration);
        options.put("reads_views", readsViews ? "true" : "");
        options.put("max_answer_bytes", firstSplits > 0 ? "" : String.valueOf(PlannerClient.MAX_ANSWER));
        options.values().removeIf(String::isEmpty);
        writer.stringMapField(9, options);
        writer.stringField(12, readVersion);
        writer.stringField(13, snapshotId);
        writer.i32Field(14, PlannerClient.PROTOCOL);
        if (firstSplits > 0) {
            writer.i32Field(16, firstSplits);
        }
        writer.stop();
    }

    String schema()
    {
        return schema;
    }

    String table()
    {
        return table;
    }

    public String readVersion()
    {
        return readVersion;
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
