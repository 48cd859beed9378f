package io.skipbridge.hive;

import io.skipbridge.hive.wire.SkippableFiles;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.security.TokenCache;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Lists the files of a job's directories with name, size and time only. Hadoop's own listing also requests owner and block locations of every
 * file, even of skipped ones. On a local file system it starts one process per file.
 */
final class PlainListing
{
    private final List<FileStatus> kept = new ArrayList<>();
    private int listed;

    private PlainListing() {}

    /** @return null if Hadoop's own listing is needed, because there is a subdirectory or a path is missing */
    static PlainListing of(JobConf job, SkippableFiles skippable)
            throws IOException
    {
        Path[] paths = FileInputFormat.getInputPaths(job);
        TokenCache.obtainTokensForNamenodes(job.getCredentials(), paths, job);
        PathFilter chosen = FileInputFormat.getInputPathFilter(job);
        PathFilter filter = path -> !isHidden(path) && (chosen == null || chosen.accept(path));
        PlainListing listing = new PlainListing();
        for (Path path : paths) {
            FileSystem files = path.getFileSystem(job);
            FileStatus[] found = files.globStatus(path, filter);
            if (found == null || found.length == 0) {
                return null;
            }
            for (FileStatus entry : found) {
                if (!listing.add(entry.isDirectory() ? files.listStatus(entry.getPath(), filter) : new FileStatus[] {entry}, skippable)) {
                    return null;
                }
            }
        }
        return listing;
    }

    private boolean add(FileStatus[] entries, SkippableFiles skippable)
    {
        for (FileStatus entry : entries) {
            if (entry.isDirectory()) {
                return false;
            }
            if (!skippable.skips(CanonicalPath.of(entry.getPath()), entry.getLen(), entry.getModificationTime())) {
                kept.add(entry);
            }
        }
        listed += entries.length;
        return true;
    }

    int listed()
    {
        return listed;
    }

    FileStatus[] kept()
    {
        return kept.toArray(new FileStatus[0]);
    }

    /** Whether so few files remain that requesting block locations per file is cheaper than for the whole directory. */
    boolean few()
    {
        return kept.size() <= listed / 4;
    }

    private static boolean isHidden(Path path)
    {
        return path.getName().startsWith("_") || path.getName().startsWith(".");
    }
}
