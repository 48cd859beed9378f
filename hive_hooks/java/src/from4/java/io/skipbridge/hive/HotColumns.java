package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.FetchOperator;
import org.apache.hadoop.hive.ql.exec.Operator;
import org.apache.hadoop.hive.ql.exec.TableScanOperator;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.hive.serde2.ColumnProjectionUtils;
import org.apache.hadoop.mapred.JobConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Collection;
import java.util.HashSet;
import java.util.List;

/**
 * Which columns all readers of a scan ask for. A job tells the columns of one scan, but its splits may be read by others too. What is not known for
 * sure is unknown: then facts are read.
 */
final class HotColumns
{
    private static final Logger log = LoggerFactory.getLogger(HotColumns.class);
    private static final String PLAN = "hive.exec.plan";

    private HotColumns() {}

    /** The columns that a scan reads; null if others may be read. */
    static List<String> of(Configuration session, TableScanDesc scan)
    {
        return Settings.pruning(session) && !scan.hasVirtualCols() ? scan.getNeededColumns() : null;
    }

    /** Whether no reader of a job's splits asks for other columns than these, nor for what Hive makes of places in files. */
    static boolean areAll(JobConf job, List<Integer> columns)
    {
        boolean told = !job.getBoolean(ColumnProjectionUtils.READ_ALL_COLUMNS, true) && !job.getBoolean(ColumnProjectionUtils.FETCH_VIRTUAL_COLUMNS_CONF_STR, true);
        if (!told || !Settings.pruning(job)) {
            return false;
        }
        try {
            return isAskedByFetch() || areOfOneScan(job, columns);
        }
        catch (RuntimeException | LinkageError e) {
            log.warn("skipbridge: facts are read in place of views: {}", e.toString(), e);
            return false;
        }
    }

    /** A fetch reads its splits with the same job that it asks for them with, in this JVM. It has no plan. */
    private static boolean isAskedByFetch()
    {
        String own = SegmentInputFormat.class.getName();
        StackTraceElement[] frames = new Throwable().getStackTrace();
        for (int i = 0; i + 1 < frames.length; i++) {
            String caller = frames[i + 1].getClassName();
            if (frames[i].getClassName().equals(own) && !caller.equals(own)) {
                return caller.equals(FetchOperator.class.getName());
            }
        }
        return false;
    }

    /** Tasks take the columns from their plan: from all scans of the split's directory. */
    private static boolean areOfOneScan(JobConf job, List<Integer> columns)
    {
        MapWork work = job.get(PLAN) == null || Utilities.getMergeWork(job) != null ? null : Utilities.getMapWork(job);
        Collection<Operator<?>> scans = work == null ? null : work.getAliasToWork().values();
        if (scans == null || scans.size() != 1 || !(scans.iterator().next() instanceof TableScanOperator)) {
            return false;
        }
        TableScanOperator scan = (TableScanOperator) scans.iterator().next();
        List<Integer> needed = scan.getNeededColumnIDs();
        return needed != null && !scan.getConf().hasVirtualCols() && new HashSet<>(needed).equals(new HashSet<>(columns));
    }
}
