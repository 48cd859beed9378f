package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.CombineHiveInputFormat.AvoidSplitCombination;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;

import java.io.IOException;

/** Hive's ORC input format without the files that hold no matching row; it never calls listStatus, so its splits are looked through. */
public class BridgeOrcInputFormat
        extends OrcInputFormat
        implements AvoidSplitCombination
{
    private static final String BY_POSITION = "orc.force.positional.evolution";

    @Override
    public InputSplit[] getSplits(JobConf job, int count)
            throws IOException
    {
        return FileSkipper.keep(super.getSplits(job, count), job, BY_POSITION);
    }

    @Override
    public boolean shouldSkipCombine(Path path, Configuration configuration)
    {
        return true;
    }
}
