package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.mapred.JobConf;

import java.util.List;

/** What differs between Hive's versions: whether a scan may read files of views. Before 4.0 Parquet's readers lack the codec of views. */
final class HotColumns
{
    private HotColumns() {}

    /** The columns that a scan reads; null if others may be read. */
    static List<String> of(Configuration session, TableScanDesc scan)
    {
        return null;
    }

    /** Whether no reader of a job's splits asks for other columns than these. */
    static boolean areAll(JobConf job, List<Integer> columns)
    {
        return false;
    }
}
