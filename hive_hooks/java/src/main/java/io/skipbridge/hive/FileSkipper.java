package io.skipbridge.hive;

import io.skipbridge.hive.wire.SkippableFiles;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/** Removes skippable files from a listing. A file is skipped only if its size and time are those known to the planner. */
final class FileSkipper
{
    private static final Logger log = LoggerFactory.getLogger(FileSkipper.class);

    private FileSkipper() {}

    /** Hadoop's listing of a job's directories. */
    interface Listing
    {
        FileStatus[] list()
                throws IOException;
    }

    /** @param byPosition see {@link SkippableFilesCache#of} */
    static FileStatus[] list(JobConf job, String byPosition, Listing hadoops)
            throws IOException
    {
        return list(job, SkippableFilesCache.SHARED.of(job, byPosition), hadoops);
    }

    /** For formats whose files mean what their table says. */
    static FileStatus[] listDeclared(JobConf job, Listing hadoops)
            throws IOException
    {
        return list(job, SkippableFilesCache.SHARED.ofDeclared(job), hadoops);
    }

    private static FileStatus[] list(JobConf job, SkippableFiles skippable, Listing hadoops)
            throws IOException
    {
        if (!skippable.skipsAny()) {
            FileStatus[] all = hadoops.list();
            count(job, skippable, all.length, all.length);
            return all;
        }
        PlainListing plain = PlainListing.of(job, skippable);
        if (plain != null && plain.few() && !(plain.kept().length == 0 && needsATask(job))) {
            FileStatus[] kept = plain.kept();
            count(job, skippable, plain.listed(), kept.length);
            return kept;
        }
        return keep(hadoops.list(), job, skippable);
    }

    private static FileStatus[] keep(FileStatus[] listed, JobConf job, SkippableFiles skippable)
    {
        return keep(listed, job, skippable,
                file -> !file.isDirectory() && skippable.skips(CanonicalPath.of(file.getPath()), file.getLen(), file.getModificationTime()));
    }

    /** Leaves out what {@code skips} says; nothing if it fails, as with classes of another version. */
    static FileStatus[] keep(FileStatus[] listed, JobConf job, SkippableFiles skippable, Predicate<FileStatus> skips)
    {
        List<FileStatus> kept = new ArrayList<>(listed.length);
        try {
            for (FileStatus file : listed) {
                if (!skippable.skipsAny() || !skips.test(file)) {
                    kept.add(file);
                }
            }
        }
        catch (RuntimeException | LinkageError e) {
            Hooks.COUNTERS.failures.increment();
            log.warn("skipbridge: {} is read without skipping files: {}", job.get("name", "?"), e.toString(), e);
            count(job, skippable, listed.length, listed.length);
            return listed;
        }
        if (kept.isEmpty() && needsATask(job)) {
            count(job, skippable, listed.length, listed.length);
            return listed;
        }
        count(job, skippable, listed.length, kept.size());
        return kept.size() == listed.length ? listed : kept.toArray(new FileStatus[0]);
    }

    /** For formats that list files themselves. Lists the directories of the splits again, one call each, for the modification times. */
    static InputSplit[] keep(InputSplit[] splits, JobConf job, SkippableFiles skippable)
            throws IOException
    {
        Set<Path> listed = new HashSet<>();
        Set<Path> left = new HashSet<>();
        Map<Path, Map<Path, FileStatus>> directories = new HashMap<>();
        List<InputSplit> kept = new ArrayList<>(splits.length);
        for (InputSplit split : splits) {
            Path path = split instanceof FileSplit ? ((FileSplit) split).getPath() : null;
            listed.add(path);
            if (path == null || !skippable.skipsAny() || !skips(skippable, path, directories, job)) {
                kept.add(split);
                left.add(path);
            }
        }
        if (kept.isEmpty() && needsATask(job)) {
            count(job, skippable, listed.size(), listed.size());
            return splits;
        }
        count(job, skippable, listed.size(), left.size());
        return kept.size() == splits.length ? splits : kept.toArray(new InputSplit[0]);
    }

    private static boolean skips(SkippableFiles skippable, Path path, Map<Path, Map<Path, FileStatus>> directories, JobConf job)
            throws IOException
    {
        Path directory = path.getParent();
        Map<Path, FileStatus> files = directories.get(directory);
        if (files == null) {
            files = new HashMap<>();
            for (FileStatus file : directory.getFileSystem(job).listStatus(directory)) {
                files.put(file.getPath(), file);
            }
            directories.put(directory, files);
        }
        FileStatus file = files.get(path);
        return file != null && skippable.skips(CanonicalPath.of(path), file.getLen(), file.getModificationTime());
    }

    /** With this setting Hive ends some aggregates outside of tasks, and returns no row instead of count 0 if no task ran. */
    static boolean needsATask(JobConf job)
    {
        return job.getBoolean("hive.fetch.task.aggr", false);
    }

    static void count(JobConf job, SkippableFiles skippable, int listed, int kept)
    {
        Hooks.COUNTERS.filesListed.add(listed);
        Hooks.COUNTERS.filesSkipped.add(listed - kept);
        log.info("skipbridge: {} reads {} of {} files (generation {}, query {})",
                job.get("name", "?"), kept, listed, skippable.generation(), job.get("hive.query.id", ""));
    }
}
