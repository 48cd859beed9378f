package io.skipbridge.trino.read;

import java.io.Closeable;
import java.io.IOException;

/** An open file of any storage, and none but the planned one: opening or reading another is an error. */
interface ReadableFile
        extends Closeable
{
    long size();

    void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException;
}
