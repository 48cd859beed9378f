package io.skipbridge.trino.read;

import java.io.Closeable;
import java.io.IOException;

/** An open file of any storage; size and time are those found when it was opened. */
interface ReadableFile
        extends Closeable
{
    long size();

    /** Milliseconds since the epoch, -1 if the storage does not tell. */
    long modifiedMillis();

    /** What the time above is a multiple of, where the planner's may be finer. */
    default long timeGrainMillis()
    {
        return 1;
    }

    void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException;
}
