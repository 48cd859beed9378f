package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.CombineHiveInputFormat.AvoidSplitCombination;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hudi.hadoop.HoodieCopyOnWriteTableInputFormat;
import org.apache.hudi.hadoop.HoodieParquetInputFormat;
import org.apache.hudi.hadoop.UseFileSplitsFromInputFormat;
import org.apache.hudi.hadoop.UseRecordReaderFromInputFormat;

import java.io.IOException;

/**
 * Hudi's input format for base files, of copy-on-write tables and of read-optimised ones, without the files that hold no matching row. Hudi lists the
 * files of its version; this class leaves some of them out afterwards.
 *
 * <p>Only a Hive that has Hudi's classes loads it.
 */
@UseRecordReaderFromInputFormat
@UseFileSplitsFromInputFormat
public class BridgeHudiInputFormat
        extends HoodieParquetInputFormat
        implements AvoidSplitCombination
{
    public BridgeHudiInputFormat()
    {
        super(new Listing());
    }

    @Override
    public boolean shouldSkipCombine(Path path, Configuration configuration)
    {
        return true;
    }

    private static final class Listing
            extends HoodieCopyOnWriteTableInputFormat
    {
        @Override
        public FileStatus[] listStatus(JobConf job)
                throws IOException
        {
            return HudiSlices.BASES.keep(super.listStatus(job), job);
        }
    }
}
