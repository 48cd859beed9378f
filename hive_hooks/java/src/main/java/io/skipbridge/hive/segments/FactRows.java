package io.skipbridge.hive.segments;

import java.io.Closeable;
import java.io.IOException;

/** The rows of one file, or of a range of its bytes. */
public interface FactRows
        extends Closeable
{
    /**
     * Writes the next row's values, NULL for columns that are not wanted.
     *
     * @return whether there was a row
     */
    boolean next(Object[] values)
            throws IOException;
}
