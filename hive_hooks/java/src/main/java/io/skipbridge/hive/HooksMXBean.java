package io.skipbridge.hive;

/** What the hooks did in this JVM; registered as {@code io.skipbridge.hive:type=Hooks}. */
public interface HooksMXBean
{
    /** Calls of a planner. */
    long getCalls();

    /** Listings answered without a call, from an earlier answer for the same scan. */
    long getCachedAnswers();

    /** Calls that failed, each of which made a scan read all its files. */
    long getFailures();

    /** Scans that read all their files without a call, since one failed lately. */
    long getCallsSpared();

    long getFilesListed();

    long getFilesSkipped();
}
