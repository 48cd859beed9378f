package io.skipbridge.trino.metadata;

/** Where a column's values come from. */
public enum ColumnKind
{
    DATA,
    PARTITION_KEY,
    PATH,
    FILE_SIZE,
    FILE_MODIFIED_TIME,
    PARTITION;

    public boolean hidden()
    {
        return this != DATA && this != PARTITION_KEY;
    }
}
