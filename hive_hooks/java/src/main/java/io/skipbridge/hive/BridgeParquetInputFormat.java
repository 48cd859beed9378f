package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.CombineHiveInputFormat.AvoidSplitCombination;
import org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat;
import org.apache.hadoop.mapred.JobConf;

import java.io.IOException;

/** Hive's Parquet input format without the files that hold no matching row. */
public class BridgeParquetInputFormat
        extends MapredParquetInputFormat
        implements AvoidSplitCombination
{
    private static final String BY_POSITION = "parquet.column.index.access";

    @Override
    protected FileStatus[] listStatus(JobConf job)
            throws IOException
    {
        return FileSkipper.list(job, BY_POSITION, () -> super.listStatus(job));
    }

    /** Prevents combined splits, because another class would list their files. */
    @Override
    public boolean shouldSkipCombine(Path path, Configuration configuration)
    {
        return true;
    }
}
