package io.skipbridge.trino.read.merge;

import java.util.List;
import java.util.Set;

/** The table's columns as the blocks of one instant have them, which may be under other names or types. */
public interface LogColumns
{
    /** Names, in lower case, that every block of the instant has. */
    Set<String> names();

    /** Whether blocks have a column under its own name and with its own values, or do not have it. */
    boolean isSame(String column);

    /** What to read of a block for these columns of the table. */
    StoredColumns stored(List<SliceRequest.Column> columns);
}
