package io.skipbridge.trino.read.merge;

/** The rows of a merged slice, in pages. */
public interface MergedPages
        extends RowPages
{
    /** An estimate of the memory that the logs' rows take, in bytes. */
    long memoryBytes();
}
