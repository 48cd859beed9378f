package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.CombineHiveInputFormat.AvoidSplitCombination;
import org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat;
import org.apache.hadoop.mapred.JobConf;

import java.io.IOException;

/** Hive's Avro input format without the files that hold no matching row. */
public class BridgeAvroInputFormat
        extends AvroContainerInputFormat
        implements AvoidSplitCombination
{
    @Override
    protected FileStatus[] listStatus(JobConf job)
            throws IOException
    {
        return FileSkipper.listDeclared(job, () -> super.listStatus(job));
    }

    @Override
    public boolean shouldSkipCombine(Path path, Configuration configuration)
    {
        return true;
    }
}
