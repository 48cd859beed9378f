package io.skipbridge.hive;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.QueryPlan;
import org.apache.hadoop.hive.ql.exec.ConditionalTask;
import org.apache.hadoop.hive.ql.exec.FetchTask;
import org.apache.hadoop.hive.ql.exec.Operator;
import org.apache.hadoop.hive.ql.exec.TableScanOperator;
import org.apache.hadoop.hive.ql.exec.Task;
import org.apache.hadoop.hive.ql.io.merge.MergeFileWork;
import org.apache.hadoop.hive.ql.metadata.Table;
import org.apache.hadoop.hive.ql.plan.BaseWork;
import org.apache.hadoop.hive.ql.plan.FetchWork;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.MapredLocalWork;
import org.apache.hadoop.hive.ql.plan.MapredWork;
import org.apache.hadoop.hive.ql.plan.MergeJoinWork;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.hive.ql.plan.TezWork;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * The descriptors by which the tasks of a query read tables.
 *
 * <p>Left out are tables of a storage handler, ACID, bucketed and temporary tables, samples, files that Hive merges, and directories that scans of
 * several tables share.
 */
final class PlannedScans
{
    private final Set<PartitionDesc> ofTasks = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Set<PartitionDesc> ofFetch = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Set<String> tables = new TreeSet<>();
    private final List<FetchWork> fetchesOfTasks = new ArrayList<>();
    private FetchTask fetchOfTable;

    private PlannedScans() {}

    static PlannedScans of(QueryPlan plan)
    {
        PlannedScans scans = new PlannedScans();
        if (plan.getRootTasks() != null) {
            scans.addTasks(plan.getRootTasks());
        }
        FetchTask fetch = plan.getFetchTask();
        if (fetch != null && fetch.getWork() != null) {
            scans.addFetch(fetch);
        }
        return scans;
    }

    boolean isEmpty()
    {
        return tables.isEmpty();
    }

    /** Names of the tables, {@code schema.table}. */
    Set<String> tables()
    {
        return tables;
    }

    /** What tasks read, in this JVM or elsewhere. */
    List<PartitionDesc> ofTasks()
    {
        return new ArrayList<>(ofTasks);
    }

    /** What the query's own fetch reads, partition by partition. */
    List<PartitionDesc> ofFetch()
    {
        return new ArrayList<>(ofFetch);
    }

    /** What tasks fetch of tables without partitions. */
    List<FetchWork> fetchesOfTasks()
    {
        return fetchesOfTasks;
    }

    /** The query's own fetch if it reads a table without partitions; else null. */
    FetchTask fetchOfTable()
    {
        return fetchOfTable;
    }

    private void addTasks(Collection<? extends Task<?>> roots)
    {
        Set<Task<?>> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        Deque<Task<?>> left = new ArrayDeque<>(roots);
        while (!left.isEmpty()) {
            Task<?> task = left.pop();
            if (!seen.add(task)) {
                continue;
            }
            addWork(task.getWork());
            addAll(left, task.getChildTasks());
            addAll(left, task.getDependentTasks());
            addAll(left, task.getBackupChildrenTasks());
            if (task.getBackupTask() != null) {
                left.add(task.getBackupTask());
            }
            if (task instanceof ConditionalTask) {
                addAll(left, ((ConditionalTask) task).getListTasks());
            }
        }
    }

    private static void addAll(Deque<Task<?>> tasks, Collection<? extends Task<?>> more)
    {
        if (more != null) {
            tasks.addAll(more);
        }
    }

    private void addWork(Object work)
    {
        if (work instanceof TezWork) {
            ((TezWork) work).getAllWorkUnsorted().forEach(this::addWork);
        }
        else if (work instanceof MergeJoinWork) {
            for (BaseWork part : ((MergeJoinWork) work).getBaseWorkList()) {
                addWork(part);
            }
            addWork(((MergeJoinWork) work).getMainWork());
        }
        else if (work instanceof MapredWork) {
            addWork(((MapredWork) work).getMapWork());
        }
        else if (work instanceof MapWork && !(work instanceof MergeFileWork)) {
            addMap((MapWork) work);
        }
        else if (work instanceof MapredLocalWork && ((MapredLocalWork) work).getAliasToFetchWork() != null) {
            MapredLocalWork local = (MapredLocalWork) work;
            local.getAliasToFetchWork().forEach((alias, fetch) -> addLocalFetch(fetch, local.getAliasToWork().get(alias)));
        }
    }

    private void addMap(MapWork work)
    {
        addWork(work.getMapRedLocalWork());
        if (work.getNameToSplitSample() != null && !work.getNameToSplitSample().isEmpty()) {
            return;
        }
        for (Map.Entry<Path, PartitionDesc> scanned : work.getPathToPartitionInfo().entrySet()) {
            if (isOfOneTable(work, scanned.getKey(), scanned.getValue())) {
                add(scanned.getValue(), ofTasks);
            }
        }
    }

    /** Whether only scans of the descriptor's own table read the directory. */
    private static boolean isOfOneTable(MapWork work, Path path, PartitionDesc partition)
    {
        Collection<String> aliases = work.getPathToAliases().get(path);
        if (aliases == null || aliases.isEmpty()) {
            return false;
        }
        for (String alias : aliases) {
            Operator<?> operator = work.getAliasToWork().get(alias);
            Table table = isPlain(operator) ? ((TableScanOperator) operator).getConf().getTableMetadata() : null;
            if (table == null || !name(partition.getTableDesc()).equals(table.getDbName() + "." + table.getTableName())) {
                return false;
            }
        }
        return true;
    }

    /**
     * Whether the operator scans all rows of a table that the planner may know. A sample is a part of the files that are read, so it depends on what
     * is skipped. A temporary table may have other columns than the table that it hides, over the same files.
     */
    private static boolean isPlain(Operator<?> operator)
    {
        if (!(operator instanceof TableScanOperator)) {
            return false;
        }
        TableScanDesc scan = ((TableScanOperator) operator).getConf();
        return scan != null && scan.getRowLimit() < 0 && scan.getTableMetadata() != null && !scan.getTableMetadata().isTemporary();
    }

    private void addLocalFetch(FetchWork work, Operator<?> scan)
    {
        if (!isPlain(scan) || work.getSplitSample() != null) {
            return;
        }
        if (work.isPartitioned()) {
            if (work.getPartDesc() != null) {
                work.getPartDesc().forEach(partition -> add(partition, ofTasks));
            }
        }
        else if (work.getTblDesc() != null && isReadable(work.getTblDesc())) {
            tables.add(name(work.getTblDesc()));
            fetchesOfTasks.add(work);
        }
    }

    private void addFetch(FetchTask task)
    {
        FetchWork work = task.getWork();
        if (!isPlain(work.getSource()) || work.getSplitSample() != null) {
            return; // also the results of tasks, of the result cache, or of statistics
        }
        if (work.isPartitioned()) {
            if (work.getPartDesc() != null) {
                work.getPartDesc().forEach(partition -> add(partition, ofFetch));
            }
        }
        else if (work.getTblDesc() != null && isReadable(work.getTblDesc())) {
            tables.add(name(work.getTblDesc()));
            fetchOfTable = task;
        }
    }

    private void add(PartitionDesc partition, Set<PartitionDesc> to)
    {
        if (partition != null && partition.getTableDesc() != null && isReadable(partition.getTableDesc())) {
            tables.add(name(partition.getTableDesc()));
            to.add(partition);
        }
    }

    private static boolean isReadable(TableDesc table)
    {
        return name(table).indexOf('.') > 0
                && !table.isNonNative()
                && !Boolean.parseBoolean(table.getProperties().getProperty("transactional"));
    }

    static String name(TableDesc table)
    {
        String name = table.getProperties().getProperty("name");
        return name == null ? "" : name;
    }
}
