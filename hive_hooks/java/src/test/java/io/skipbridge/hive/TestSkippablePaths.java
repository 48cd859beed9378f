package io.skipbridge.hive;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.TextInputFormat;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestSkippablePaths
{
    /** What Hive leaves in the job for the next partitions does not apply to them. */
    @Test
    void onlyPartitionsOfTheToldTableAndFormatAreFiltered()
    {
        assertTrue(asks("s.t", BridgeTextInputFormat.class));
        assertFalse(asks("s.t", TextInputFormat.class));
        assertFalse(asks("s.other", BridgeTextInputFormat.class));
    }

    /** Whether the scan's filter is looked at. It cannot be read, which is counted. */
    private static boolean asks(String table, Class<? extends InputFormat> format)
    {
        JobConf job = new JobConf();
        job.set("skipbridge.filtered_table", "s.t");
        job.set("name", table);
        job.set("skipbridge.planner", "127.0.0.1:1");
        job.set("schema.evolution.columns", "c");
        job.set("schema.evolution.columns.types", "int");
        job.set(TableScanDesc.FILTER_EXPR_CONF_STR, "no expression");
        job.setInputFormat(format);
        SkippablePaths filter = new SkippablePaths();
        filter.setConf(job);
        long before = Hooks.COUNTERS.failures.sum();
        assertTrue(filter.accept(new Path("file:/t/f")));
        return Hooks.COUNTERS.failures.sum() > before;
    }
}
