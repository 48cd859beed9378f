package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.CombineHiveInputFormat.AvoidSplitCombination;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hudi.hadoop.HoodieParquetInputFormatBase;
import org.apache.hudi.hadoop.UseFileSplitsFromInputFormat;
import org.apache.hudi.hadoop.UseRecordReaderFromInputFormat;
import org.apache.hudi.hadoop.realtime.HoodieMergeOnReadTableInputFormat;
import org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.lang.reflect.Field;

/** Hudi's input format for file slices with their logs, without the slices of which neither the base file nor any log holds a matching row. */
@UseRecordReaderFromInputFormat
@UseFileSplitsFromInputFormat
public class BridgeHudiRealtimeInputFormat
        extends HoodieParquetRealtimeInputFormat
        implements AvoidSplitCombination
{
    private static final Logger log = LoggerFactory.getLogger(BridgeHudiRealtimeInputFormat.class);

    public BridgeHudiRealtimeInputFormat()
    {
        // Hudi's class makes its own listing, takes no other, and lets nobody override its methods.
        try {
            Field listing = HoodieParquetInputFormatBase.class.getDeclaredField("inputFormatDelegate");
            listing.setAccessible(true);
            listing.set(this, new Listing());
        }
        catch (ReflectiveOperationException | RuntimeException e) {
            log.warn("skipbridge: slices of merge-on-read tables are read without skipping: this version of Hudi lists them in another way", e);
        }
    }

    @Override
    public boolean shouldSkipCombine(Path path, Configuration configuration)
    {
        return true;
    }

    private static final class Listing
            extends HoodieMergeOnReadTableInputFormat
    {
        @Override
        public FileStatus[] listStatus(JobConf job)
                throws IOException
        {
            return HudiSlices.WITH_LOGS.keep(super.listStatus(job), job);
        }
    }
}
