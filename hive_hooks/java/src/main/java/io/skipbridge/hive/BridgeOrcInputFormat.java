package io.skipbridge.hive;

import io.skipbridge.hive.wire.SkippableFiles;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.CombineHiveInputFormat.AvoidSplitCombination;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;

import java.io.IOException;

/**
 * Hive's ORC input format without the files that hold no matching row. It never calls listStatus, so its splits are filtered instead.
 *
 * <p>Hive finds ORC columns by name or by position. The planner skips a file only if both ways find the same column.
 */
public class BridgeOrcInputFormat
        extends OrcInputFormat
        implements AvoidSplitCombination
{
    private static final String STRATEGY = "hive.exec.orc.split.strategy";
    private static final String CHOSEN_BY_HIVE = "HYBRID";
    private static final String WITHOUT_FOOTERS = "BI";

    /** If most files are skipped, Hive does not read their footers either, unless a split strategy is configured. */
    @Override
    public InputSplit[] getSplits(JobConf job, int count)
            throws IOException
    {
        SkippableFiles skippable = SkippableFilesCache.SHARED.of(job, null);
        JobConf splitting = job;
        if (skippable.skipsMost() && CHOSEN_BY_HIVE.equalsIgnoreCase(job.getTrimmed(STRATEGY, CHOSEN_BY_HIVE))) {
            splitting = new JobConf(job);
            splitting.set(STRATEGY, WITHOUT_FOOTERS);
        }
        return FileSkipper.keep(super.getSplits(splitting, count), job, skippable);
    }

    @Override
    public boolean shouldSkipCombine(Path path, Configuration configuration)
    {
        return true;
    }
}
