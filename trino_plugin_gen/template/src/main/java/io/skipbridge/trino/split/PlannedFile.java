package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;

import java.util.List;

/**
 * A byte range of a file, with the size and time that the planner saw; {@code modifiedMillis} is -1 when unknown.
 *
 * @param logs in the order in which a reader merges them. A slice of logs alone has no path and size -1
 * @param etagHash of the version that the planner's index describes; 0 when unknown
 */
public record PlannedFile(
        String path,
        long start,
        long length,
        long size,
        long modifiedMillis,
        PartitionEntry partition,
        ReaderSpec reader,
        List<LogFile> logs,
        int etagHash)
{
    public PlannedFile(String path, long start, long length, long size, long modifiedMillis, PartitionEntry partition, ReaderSpec reader, List<LogFile> logs)
    {
        this(path, start, length, size, modifiedMillis, partition, reader, logs, 0);
    }

    public PlannedFile
    {
        logs = List.copyOf(logs);
    }

    /** Whether the range contains the byte. A row group belongs to the range that contains its first byte. */
    public boolean contains(long offset)
    {
        return start <= offset && offset - start < length;
    }
}
