package io.skipbridge.hive;

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

    /** Queries whose descriptors {@link SkipFilesHook} changed. */
    long getPlansChanged();
}
