package io.skipbridge.hive;

import io.skipbridge.hive.wire.SkippableFiles;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.hadoop.PathWithBootstrapFileStatus;
import org.apache.hudi.hadoop.RealtimeFileStatus;
import org.apache.hudi.hadoop.realtime.HoodieRealtimePath;

/**
 * Removes file slices from Hudi's own listing. A slice is left out only if its base file and each of its logs, all as long as Hudi reads them, hold no
 * matching row. Hudi never writes a base file twice and only appends to logs, so path and length tell what a file holds.
 */
enum HudiSlices
{
    /** Base files, whatever logs there are. */
    BASES {
        @Override
        boolean skips(FileStatus slice, SkippableFiles skippable)
        {
            return slice.getClass() != RealtimeFileStatus.class && !(slice.getPath() instanceof PathWithBootstrapFileStatus) && skipsFile(slice, skippable);
        }
    },
    /** Base files with the logs to merge, or logs alone: then the file is the newest of them. */
    WITH_LOGS {
        @Override
        boolean skips(FileStatus slice, SkippableFiles skippable)
        {
            if (slice.getClass() != RealtimeFileStatus.class) {
                return false;
            }
            Path path = slice.getPath();
            if (!(path instanceof HoodieRealtimePath) || ((HoodieRealtimePath) path).includeBootstrapFilePath() || !skipsFile(slice, skippable)) {
                return false;
            }
            for (HoodieLogFile log : ((RealtimeFileStatus) slice).getDeltaLogFiles()) {
                if (!skippable.skipsWritten(CanonicalPath.of(new Path(log.getPath().toUri())), log.getFileSize())) {
                    return false;
                }
            }
            return true;
        }
    };

    private static final String BY_POSITION = "parquet.column.index.access";

    abstract boolean skips(FileStatus slice, SkippableFiles skippable);

    final FileStatus[] keep(FileStatus[] listed, JobConf job)
    {
        SkippableFiles skippable = SkippableFilesCache.SHARED.of(job, BY_POSITION);
        return FileSkipper.keep(listed, job, skippable, slice -> skips(slice, skippable));
    }

    private static boolean skipsFile(FileStatus file, SkippableFiles skippable)
    {
        return !file.isDirectory() && skippable.skipsWritten(CanonicalPath.of(file.getPath()), file.getLen());
    }
}
