package io.skipbridge.hive;

import java.util.Map;

/** Counters of the hooks in this JVM, registered as {@code io.skipbridge.hive:type=Hooks}. */
public interface HooksMXBean
{
    /** Calls to a planner. */
    long getCalls();

    /** Listings answered from the cache, after an earlier call for the same scan. */
    long getCachedAnswers();

    /** Failed calls. After each, a scan read all its files. */
    long getFailures();

    /** Scans that read all their files without a call, because of a recent failure. */
    long getCallsSpared();

    long getFilesListed();

    long getFilesSkipped();

    /** Files without a matching row in planners' answers, by the kind of index that excludes them. */
    Map<String, Long> getFilesExcluded();

    /** Such files that were read, because an answer would have been too long. */
    long getFilesUnnamed();

    /** Queries whose descriptors {@link SkipFilesHook} changed. */
    long getPlansChanged();
}
