package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.PartitionEntry;

/** A byte range of a file as the planner knew it; {@code modifiedMillis} is -1 when unknown. */
public record PlannedFile(String path, long start, long length, long size, long modifiedMillis, PartitionEntry partition)
{
    /** Row groups are taken by their first byte. */
    public boolean contains(long offset)
    {
        return start <= offset && offset - start < length;
    }
}
