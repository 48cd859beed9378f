package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.CombineHiveInputFormat.AvoidSplitCombination;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.TextInputFormat;

import java.io.IOException;

/** Hive's text input format (delimited, CSV or JSON, by SerDe) without the files that hold no matching row. */
public class BridgeTextInputFormat
        extends TextInputFormat
        implements AvoidSplitCombination
{
    @Override
    protected FileStatus[] listStatus(JobConf job)
            throws IOException
    {
        JobConf own = SkippablePaths.without(job);
        return FileSkipper.listDeclared(own, () -> super.listStatus(own));
    }

    @Override
    public boolean shouldSkipCombine(Path path, Configuration configuration)
    {
        return true;
    }
}
