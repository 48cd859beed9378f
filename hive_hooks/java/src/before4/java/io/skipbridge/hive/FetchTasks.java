package io.skipbridge.hive;

import org.apache.hadoop.hive.ql.exec.FetchTask;
import org.apache.hadoop.hive.ql.hooks.HookContext;

/** What differs between Hive's versions. */
final class FetchTasks
{
    private FetchTasks() {}

    /** Initialises a fetch as Hive's compiler did. Its operators are made, so it needs no context to make them. */
    static void initialize(FetchTask task, HookContext context)
    {
        task.initialize(context.getQueryState(), context.getQueryPlan(), null, null);
    }
}
