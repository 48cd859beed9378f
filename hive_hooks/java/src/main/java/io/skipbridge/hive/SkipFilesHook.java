package io.skipbridge.hive;

import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.exec.FetchTask;
import org.apache.hadoop.hive.ql.hooks.ExecuteWithHookContext;
import org.apache.hadoop.hive.ql.hooks.HookContext;
import org.apache.hadoop.hive.ql.plan.FetchWork;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.mapred.InputFormat;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A hook for {@code hive.exec.pre.hooks}: lets a compiled query read indexed tables through skipbridge's input formats. Tables, partitions and the
 * metastore are not changed, only this query's own descriptors.
 *
 * <p>The law: the class that replaces an input format extends it, so every decision that Hive took while it compiled still holds. Whatever is not
 * understood stays as it is, and no failure here fails a query.
 */
public final class SkipFilesHook
        implements ExecuteWithHookContext
{
    /** Of a descriptor's job properties, which no table property reaches: the planner's address and the time-out. */
    static final String TOLD = "skipbridge.told";

    private static final Logger log = LoggerFactory.getLogger(SkipFilesHook.class);
    private static final CircuitBreaker WARNED = new CircuitBreaker(TimeUnit.SECONDS.toNanos(30), System::nanoTime);

    @Override
    public void run(HookContext context)
    {
        try {
            hook(context);
        }
        catch (VirtualMachineError e) {
            if (!(e instanceof StackOverflowError)) {
                throw e;
            }
            failed(e);
        }
        catch (Throwable e) {
            failed(e);
        }
    }

    private static void hook(HookContext context)
    {
        HiveConf configuration = context.getConf();
        if (context.getQueryPlan() == null || !Settings.pruning(configuration)) {
            return;
        }
        PlannedScans scans = PlannedScans.of(context.getQueryPlan());
        if (scans.isEmpty()) {
            return;
        }
        if (TaskJar.isOfOneSession()) {
            warn("session", "queries run without skipping files: the hooks are not on HiveServer2's class path",
                    "put their jar into lib/, hive.aux.jars.path is not enough, and restart HiveServer2", null);
            return;
        }
        KnownTables.Answer known = KnownTables.SHARED.of(configuration, scans.tables());
        Map<PartitionDesc, Class<? extends InputFormat>> ofTasks = chosen(scans.ofTasks(), known);
        if (configuration.get("hive.execution.engine", "mr").equals("mr")) {
            // Hive's combined reader counts header lines as rows where ours does not: what it answers must not depend on an index.
            ofTasks.keySet().removeIf(read -> SkippablePaths.skipsLines(read.getTableDesc().getProperties()));
        }
        Map<FetchWork, TableDesc> fetchesOfTasks = new IdentityHashMap<>();
        for (FetchWork fetch : scans.fetchesOfTasks()) {
            TableDesc changed = changed(fetch, known);
            if (changed != null) {
                fetchesOfTasks.put(fetch, changed);
            }
        }
        if (!(ofTasks.isEmpty() && fetchesOfTasks.isEmpty()) && !TaskJar.reachesTasks(configuration)) {
            warn("jar", "tasks read all files: they cannot load the hooks", "put their jar into lib/ and name it in hive.aux.jars.path", null);
            ofTasks.clear();
            fetchesOfTasks.clear();
        }
        String toTell = Settings.toTell(configuration);
        Map<PartitionDesc, Class<? extends InputFormat>> ofFetch = chosen(scans.ofFetch(), known);
        ofTasks.forEach(PartitionDesc::setInputFileFormatClass);
        SkippablePaths.tell(ofTasks.keySet(), configuration);
        tellTasks(ofTasks.keySet());
        Map<TableDesc, TableDesc> told = new IdentityHashMap<>();
        ofTasks.keySet().forEach(read -> read.setTableDesc(told.computeIfAbsent(read.getTableDesc(), table -> Settings.told(table, toTell))));
        fetchesOfTasks.forEach(FetchWork::setTblDesc);
        ofFetch.forEach(PartitionDesc::setInputFileFormatClass);
        if (!ofFetch.isEmpty()) {
            tellFetch(ofFetch.keySet());
        }
        boolean fetched = scans.fetchOfTable() != null && exchange(context, scans.fetchOfTable(), known);
        if (fetched || !ofTasks.isEmpty() || !fetchesOfTasks.isEmpty() || !ofFetch.isEmpty()) {
            Hooks.COUNTERS.plansChanged.increment();
        }
    }

    /** Partitions of a fetch share one job, so that they have to be read in one way. Hive shares their descriptors of the table between queries. */
    static void tellFetch(Collection<PartitionDesc> partitions)
    {
        String declaration = Declaration.of(partitions);
        String otherwise = DescribedColumns.told(partitions);
        Map<TableDesc, TableDesc> copies = new IdentityHashMap<>();
        for (PartitionDesc partition : partitions) {
            TableDesc copy = copies.computeIfAbsent(partition.getTableDesc(), table -> (TableDesc) table.clone());
            Declaration.tell(copy, declaration);
            DescribedColumns.tell(copy, otherwise);
            partition.setTableDesc(copy);
        }
    }

    /** A local task of a map join fetches its partitions without a plan in its job, as the query's own fetch does. */
    static void tellTasks(Collection<PartitionDesc> partitions)
    {
        Map<String, List<PartitionDesc>> tables = new HashMap<>();
        for (PartitionDesc partition : partitions) {
            tables.computeIfAbsent(PlannedScans.name(partition.getTableDesc()), name -> new ArrayList<>()).add(partition);
        }
        for (List<PartitionDesc> read : tables.values()) {
            String otherwise = DescribedColumns.told(read);
            if (otherwise.isEmpty()) {
                continue;
            }
            Map<TableDesc, TableDesc> copies = new IdentityHashMap<>();
            for (PartitionDesc partition : read) {
                TableDesc copy = copies.computeIfAbsent(partition.getTableDesc(), table -> (TableDesc) table.clone());
                DescribedColumns.tell(copy, otherwise);
                partition.setTableDesc(copy);
            }
        }
    }

    private static Map<PartitionDesc, Class<? extends InputFormat>> chosen(List<PartitionDesc> partitions, KnownTables.Answer known)
    {
        Map<PartitionDesc, Class<? extends InputFormat>> chosen = new IdentityHashMap<>();
        Map<Class<?>, Class<? extends InputFormat>> classes = new HashMap<>();
        for (PartitionDesc partition : partitions) {
            Class<? extends InputFormat> ours = known.inputFormat(partition, classes);
            if (ours != null) {
                chosen.put(partition, ours);
            }
        }
        return chosen;
    }

    /** The descriptor to fetch a table without partitions with; null if it stays as it is. It is a copy: Hive shares equal descriptors between queries. */
    private static TableDesc changed(FetchWork work, KnownTables.Answer known)
    {
        Class<? extends InputFormat> ours = known.inputFormat(new PartitionDesc(work.getTblDesc(), null), new HashMap<>());
        if (ours == null) {
            return null;
        }
        TableDesc changed = (TableDesc) work.getTblDesc().clone();
        changed.setInputFileFormatClass(ours);
        Declaration.tell(changed, Declaration.of(changed.getProperties(), null));
        return changed;
    }

    /** The query's own fetch has held its descriptor since it was initialised, so it is initialised again. */
    private static boolean exchange(HookContext context, FetchTask task, KnownTables.Answer known)
    {
        FetchWork work = task.getWork();
        TableDesc before = work.getTblDesc();
        TableDesc changed = changed(work, known);
        if (changed == null) {
            return false;
        }
        work.setTblDesc(changed);
        if (task.getInitialized()) {
            try {
                FetchTasks.initialize(task, context);
            }
            catch (RuntimeException | LinkageError e) {
                work.setTblDesc(before);
                FetchTasks.initialize(task, context);
                throw e;
            }
        }
        return true;
    }

    private static void failed(Throwable e)
    {
        Hooks.COUNTERS.failures.increment();
        boolean setting = e instanceof IllegalArgumentException && String.valueOf(e.getMessage()).startsWith("skipbridge.");
        warn(setting ? e.getMessage() : e.getClass().getName(), "the query runs without skipping files: " + e,
                setting ? "correct the setting" : "build the jar for this version of Hive: skipbridge hive jar", e);
    }

    private static void warn(String what, String why, String remedy, Throwable cause)
    {
        if (!WARNED.open(what) && WARNED.failed(what)) {
            log.warn("skipbridge: {} -> {} (told again after 30 s)", why, remedy, cause);
        }
    }
}
