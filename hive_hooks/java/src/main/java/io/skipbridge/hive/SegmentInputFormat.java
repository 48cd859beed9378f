package io.skipbridge.hive;

import io.skipbridge.hive.segments.Columns;
import io.skipbridge.hive.segments.FactScan;
import io.skipbridge.hive.segments.SegmentRow;
import io.skipbridge.hive.wire.PlannedFile;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.serde2.ColumnProjectionUtils;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Reads tables of segments: exactly the files that the planner names, which are those that the table's log has committed, without those that hold no
 * matching row. Nothing is listed. Without the planner the query fails, because nothing else knows the files.
 */
public class SegmentInputFormat
        implements InputFormat<NullWritable, SegmentRow>
{
    @Override
    public InputSplit[] getSplits(JobConf job, int count)
            throws IOException
    {
        String table = SegmentStorageHandler.table(job);
        Columns columns = SegmentStorageHandler.columns(job);
        Path[] paths = FileInputFormat.getInputPaths(job);
        if (paths.length != 1) {
            throw new IOException(table + " is one directory, not " + paths.length);
        }
        List<InputSplit> splits = new ArrayList<>();
        for (List<PlannedFile> files : SegmentPlans.files(job, table, columns, hot(job, columns))) {
            splits.add(new SegmentSplit(paths[0], table, columns, files));
        }
        if (splits.isEmpty() && FileSkipper.needsATask(job)) {
            splits.add(new SegmentSplit(paths[0], table, columns, Collections.emptyList()));
        }
        return splits.toArray(new InputSplit[0]);
    }

    @Override
    public RecordReader<NullWritable, SegmentRow> getRecordReader(InputSplit split, JobConf job, Reporter reporter)
            throws IOException
    {
        SegmentSplit own = (SegmentSplit) split;
        return new SegmentRecordReader(own, new FactScan(own.table(), own.columns(), wanted(job, own.columns()), job, reporter));
    }

    /** The names of the columns that every reader of the splits asks for; null if others may be asked for. */
    private static List<String> hot(JobConf job, Columns columns)
    {
        List<Integer> wanted = wanted(job, columns);
        return HotColumns.areAll(job, wanted) ? wanted.stream().map(columns::name).collect(Collectors.toList()) : null;
    }

    private static List<Integer> wanted(JobConf job, Columns columns)
    {
        List<Integer> all = new ArrayList<>();
        for (int i = 0; i < columns.size(); i++) {
            all.add(i);
        }
        if (!ColumnProjectionUtils.isReadAllColumns(job)) {
            all.retainAll(ColumnProjectionUtils.getReadColumnIDs(job));
        }
        return all;
    }
}
