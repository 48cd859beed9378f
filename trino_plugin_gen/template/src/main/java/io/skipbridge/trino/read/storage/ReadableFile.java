package io.skipbridge.trino.read.storage;

import java.io.Closeable;
import java.io.IOException;

/** An open file of any storage. It is the planned file: opening or reading another one is an error. */
public interface ReadableFile
        extends Closeable
{
    long size();

    void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException;
}
