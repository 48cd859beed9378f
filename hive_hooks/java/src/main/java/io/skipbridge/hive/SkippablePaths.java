package io.skipbridge.hive;

import io.skipbridge.hive.wire.SkippableFiles;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Leaves skippable files out of a listing that Hive makes by an input format of its own. From 4.0 on it reads uncompressed text with header or footer
 * lines so, whatever input format the partition has. The listing gives names alone, so that directories with skippable files are listed once more.
 * Hadoop may list several directories at once by one filter.
 *
 * <p>The law is that of {@link FileSkipper}: a file is left out only if its size and time are those known to the planner. No failure here fails a query.
 */
public final class SkippablePaths
        implements PathFilter, Configurable
{
    private static final Logger log = LoggerFactory.getLogger(SkippablePaths.class);
    private static final String FILTER = "mapreduce.input.pathFilter.class";
    /** Hive leaves what it took from one table in the job while it lists the next one. */
    private static final String OF_TABLE = "skipbridge.filtered_table";
    /** Hive sets it to the partitions' own class, whatever lists them. */
    private static final String INPUT_FORMAT = "mapred.input.format.class";

    private final Map<Path, Set<Path>> directories = new ConcurrentHashMap<>();
    private final Set<String> roots = new HashSet<>();
    private JobConf job;
    private volatile SkippableFiles skippable;

    /** Has Hive list these partitions' files through the filter, where they have header or footer lines. The jar must reach who makes the splits. */
    static void tell(Collection<PartitionDesc> partitions, HiveConf configuration)
    {
        if (configuration.get(FILTER) != null) {
            return;
        }
        Map<TableDesc, TableDesc> copies = new IdentityHashMap<>();
        for (PartitionDesc partition : partitions) {
            if (partition.getInputFileFormatClass() == BridgeTextInputFormat.class && skipsLines(partition.getTableDesc().getProperties())) {
                partition.setTableDesc(copies.computeIfAbsent(partition.getTableDesc(), SkippablePaths::told));
            }
        }
    }

    /** Whether files have header or footer lines. */
    static boolean skipsLines(Properties table)
    {
        return table.getProperty("skip.header.line.count") != null || table.getProperty("skip.footer.line.count") != null;
    }

    private static TableDesc told(TableDesc table)
    {
        TableDesc copy = (TableDesc) table.clone();
        Map<String, String> told = table.getJobProperties() == null ? new HashMap<>() : new HashMap<>(table.getJobProperties());
        told.put(FILTER, SkippablePaths.class.getName());
        told.put(OF_TABLE, copy.getTableName());
        copy.setJobProperties(told);
        return copy;
    }

    /** The job of a listing that leaves out skippable files itself. */
    static JobConf without(JobConf job)
    {
        if (!SkippablePaths.class.getName().equals(job.get(FILTER))) {
            return job;
        }
        JobConf own = new JobConf(job);
        own.unset(FILTER);
        return own;
    }

    @Override
    public void setConf(Configuration configuration)
    {
        job = configuration instanceof JobConf ? (JobConf) configuration : new JobConf(configuration);
    }

    @Override
    public Configuration getConf()
    {
        return job;
    }

    @Override
    public boolean accept(Path path)
    {
        try {
            SkippableFiles known = known();
            if (!known.skipsAny()) {
                return true;
            }
            String name = CanonicalPath.of(path);
            return !known.names(name) || roots.contains(name) || !skips(known, path);
        }
        catch (IOException | RuntimeException | LinkageError e) {
            Hooks.COUNTERS.failures.increment();
            log.warn("skipbridge: {} is read without skipping files: {}", job.get("name", "?"), e.toString(), e);
            skippable = SkippableFiles.nothing();
            return true;
        }
    }

    private SkippableFiles known()
    {
        if (skippable == null) {
            synchronized (this) {
                if (skippable == null) {
                    skippable = asked();
                }
            }
        }
        return skippable;
    }

    private SkippableFiles asked()
    {
        boolean told = job.get("name", "").equals(job.get(OF_TABLE)) && BridgeTextInputFormat.class.getName().equals(job.get(INPUT_FORMAT));
        if (!told || FileSkipper.needsATask(job)) {
            return SkippableFiles.nothing();
        }
        for (Path root : FileInputFormat.getInputPaths(job)) {
            roots.add(CanonicalPath.of(root));
        }
        return SkippableFilesCache.SHARED.ofDeclared(job);
    }

    private boolean skips(SkippableFiles known, Path path)
            throws IOException
    {
        Path directory = path.getParent();
        Set<Path> skipped = directories.get(directory);
        if (skipped == null) {
            skipped = list(known, directory);
            directories.put(directory, skipped);
        }
        return skipped.contains(path);
    }

    /** The skippable files of a directory. */
    private Set<Path> list(SkippableFiles known, Path directory)
            throws IOException
    {
        Set<Path> skipped = new HashSet<>();
        int all = 0;
        for (FileStatus file : directory.getFileSystem(job).listStatus(directory)) {
            String name = file.getPath().getName();
            if (file.isDirectory() || name.startsWith("_") || name.startsWith(".")) {
                continue;
            }
            all++;
            if (known.skips(CanonicalPath.of(file.getPath()), file.getLen(), file.getModificationTime())) {
                skipped.add(file.getPath());
            }
        }
        FileSkipper.count(job, known, all, all - skipped.size());
        return skipped;
    }
}
