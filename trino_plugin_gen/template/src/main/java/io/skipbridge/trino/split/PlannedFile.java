package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.PartitionEntry;

/** A byte range of a file, with the size and time that the planner saw; {@code modifiedMillis} is -1 when unknown. */
public record PlannedFile(String path, long start, long length, long size, long modifiedMillis, PartitionEntry partition)
{
    /** Whether the range contains the byte. A row group belongs to the range that contains its first byte. */
    public boolean contains(long offset)
    {
        return start <= offset && offset - start < length;
    }
}
