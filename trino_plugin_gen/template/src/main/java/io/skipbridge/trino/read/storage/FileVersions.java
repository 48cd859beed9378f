package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.TrinoException;

import java.io.IOException;
import java.time.Instant;

/** Refuses files whose size, time or ETag differs from the plan. */
final class FileVersions
{
    private FileVersions() {}

    /**
     * Throws FILE_CHANGED unless size and time are the planned ones. An unknown time, -1, equals any; times are compared in multiples of the grain.
     *
     * @param mayGrow whether a file that is longer now is still the planned one
     */
    static void check(PlannedFile planned, boolean mayGrow, long size, long modifiedMillis, long timeGrainMillis)
    {
        if (mayGrow && size > planned.size()) {
            return;
        }
        boolean sameTime = planned.modifiedMillis() < 0
                || modifiedMillis < 0
                || Math.floorDiv(planned.modifiedMillis(), timeGrainMillis) == Math.floorDiv(modifiedMillis, timeGrainMillis);
        if (size != planned.size() || !sameTime) {
            throw new TrinoException(
                    BridgeErrorCode.FILE_CHANGED,
                    "%s changed since it was planned: %s were planned, %s were found. %s".formatted(
                            planned.path(), state(planned.size(), planned.modifiedMillis()), state(size, modifiedMillis), again(planned)));
        }
    }

    /** Throws FILE_CHANGED unless the ETag is the planned one, or either is unknown: 0. */
    static void checkEtag(PlannedFile planned, int etagHash)
    {
        if (planned.etagHash() != 0 && etagHash != 0 && planned.etagHash() != etagHash) {
            throw new TrinoException(
                    BridgeErrorCode.FILE_CHANGED,
                    "%s changed since it was planned: its %s have another ETag now. Run the query again; after skipbridge index refresh if the table's freshness is snapshot".formatted(
                            planned.path(), state(planned.size(), planned.modifiedMillis())));
        }
    }

    static TrinoException rewritten(PlannedFile planned)
    {
        return new TrinoException(BridgeErrorCode.FILE_CHANGED, "%s was written again, with the same size, while it was read. Run the query again".formatted(planned.path()));
    }

    static TrinoException gone(PlannedFile planned, IOException problem)
    {
        return new TrinoException(BridgeErrorCode.FILE_CHANGED, "%s is gone since it was planned. %s".formatted(planned.path(), again(planned)), problem);
    }

    private static String state(long size, long modifiedMillis)
    {
        return modifiedMillis < 0 ? "%d bytes".formatted(size) : "%d bytes of %s".formatted(size, Instant.ofEpochMilli(modifiedMillis));
    }

    /** A table format that tells no times of its files names them in commits, which a query that is run again finds unchanged. */
    private static String again(PlannedFile planned)
    {
        return planned.modifiedMillis() < 0
                ? "Run the query again; if it fails again, the table's commits name a file that was damaged or deleted: restore it"
                : "Run the query again; for a table of segments run skipbridge segment refresh first";
    }
}
