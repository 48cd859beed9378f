package io.skipbridge.hive.segments;

import io.skipbridge.hive.wire.PlannedFile;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.hive.serde2.ColumnProjectionUtils;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.Reporter;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** Opens the files of a scan, each by the reader that its segment has it read with. */
public final class FactScan
{
    /** What belongs to Hive's own scan of the table: its plan, filters, columns, and settings by which readers find columns. */
    private static final String[] NOT_OF_FILES = {
        "hive.exec.plan",
        TableScanDesc.FILTER_EXPR_CONF_STR,
        TableScanDesc.FILTER_TEXT_CONF_STR,
        TableScanDesc.FILTER_OBJECT_CONF_STR,
        "sarg.pushdown",
        "hive.io.file.readNestedColumn.paths",
        "textinputformat.record.delimiter",
        "avro.schema.literal",
        "avro.schema.url",
        "skip.header.line.count",
        "skip.footer.line.count",
    };

    /** Names the columns of the view in the properties of its files' reader. */
    private static final String HELD = "skipbridge.view.columns";

    private final String table;
    private final Columns columns;
    private final List<Integer> wanted;
    private final JobConf job;
    private final Reporter reporter;

    /** @param wanted the places of the columns that are read */
    public FactScan(String table, Columns columns, List<Integer> wanted, JobConf job, Reporter reporter)
    {
        this.table = table;
        this.columns = columns;
        this.wanted = wanted;
        this.job = job;
        this.reporter = reporter;
    }

    Columns columns()
    {
        return columns;
    }

    List<Integer> wanted()
    {
        return wanted;
    }

    Reporter reporter()
    {
        return reporter;
    }

    /**
     * Opens a file that is as the planner knows it.
     *
     * @throws IOException FILE_CHANGED if it is another, UNSUPPORTED_FORMAT if this Hive has no reader for it
     */
    public FactRows open(PlannedFile file)
            throws IOException
    {
        Path path = new Path(file.path());
        requireUnchanged(file, path);
        if (file.partition().isEmpty()) {
            return rows(this, file, path);
        }
        PartitionValues values = new PartitionValues(columns, wanted, file);
        FactScan ofFile = new FactScan(table, values.columnsOfFile(), values.wantedOfFile(), job, reporter);
        return values.beside(rows(ofFile, file, path));
    }

    private static FactRows rows(FactScan scan, PlannedFile file, Path path)
            throws IOException
    {
        scan.requireHeld(file);
        if (TypedCsvRows.reads(file.reader())) {
            return new TypedCsvRows(scan, file, path);
        }
        return new HiveRows(scan, file, path);
    }

    /** A view may lack a column that facts have: then a reader asks for more than the planner was told. */
    private void requireHeld(PlannedFile file)
            throws IOException
    {
        String held = file.reader().properties().get(HELD);
        for (int column : held == null ? Collections.<Integer>emptyList() : wanted) {
            if (!Arrays.asList(held.split(",")).contains(columns.name(column))) {
                throw new IOException(String.format("TABLE_CHANGED: %s is of a view of %s that does not hold the column %s"
                        + " -> SET skipbridge.pruning_enabled=false, by which facts are read, and report this", file.path(), table, columns.name(column)));
            }
        }
    }

    private void requireUnchanged(PlannedFile file, Path path)
            throws IOException
    {
        String remedy = " -> skipbridge segment refresh " + table;
        try {
            FileStatus found = path.getFileSystem(job).getFileStatus(path);
            boolean sameTime = file.modified() == PlannedFile.ANY_TIME || file.modified() == found.getModificationTime();
            if (found.isDirectory() || found.getLen() != file.size() || !sameTime) {
                throw new IOException(String.format("FILE_CHANGED: %s has %d bytes of %d, but %d bytes of %d were added to %s%s",
                        file.path(), found.getLen(), found.getModificationTime(), file.size(), file.modified(), table, remedy));
            }
        }
        catch (FileNotFoundException e) {
            throw new IOException("FILE_CHANGED: " + file.path() + " of " + table + " is gone" + remedy, e);
        }
    }

    /** The settings by which Hive's own readers read a file of these columns, and nothing of the scan besides. */
    JobConf settings(String names, String types, String readIds, String readNames)
    {
        JobConf own = new JobConf(job);
        for (String name : NOT_OF_FILES) {
            own.unset(name);
        }
        own.set("columns", names);
        own.set("columns.types", types);
        own.set("schema.evolution.columns", names);
        own.set("schema.evolution.columns.types", types);
        own.setBoolean(ColumnProjectionUtils.READ_ALL_COLUMNS, false);
        own.set(ColumnProjectionUtils.READ_COLUMN_IDS_CONF_STR, readIds);
        own.set(ColumnProjectionUtils.READ_COLUMN_NAMES_CONF_STR, readNames);
        own.setBoolean(Utilities.VECTOR_MODE, false);
        own.setBoolean("hive.vectorized.execution.enabled", false);
        own.setBoolean("hive.transactional.table.scan", false);
        // Columns are found by their names, whatever the session's settings are.
        own.setBoolean("orc.force.positional.evolution", false);
        own.setBoolean("orc.schema.evolution.case.sensitive", false);
        own.setBoolean("parquet.column.index.access", false);
        return own;
    }
}
