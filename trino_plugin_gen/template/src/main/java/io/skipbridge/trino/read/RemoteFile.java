package io.skipbridge.trino.read;

import io.trino.filesystem.TrinoInput;
import io.trino.filesystem.TrinoInputFile;

import java.io.IOException;

/** A file of an object store, through Trino's own file system. */
final class RemoteFile
        implements ReadableFile
{
    private final TrinoInput input;
    private final long size;
    private final long modifiedMillis;

    RemoteFile(TrinoInputFile file)
            throws IOException
    {
        this.size = file.length();
        this.modifiedMillis = file.lastModified().toEpochMilli();
        this.input = file.newInput();
    }

    @Override
    public long size()
    {
        return size;
    }

    @Override
    public long modifiedMillis()
    {
        return modifiedMillis;
    }

    /** Headers of HTTP have whole seconds; listings of some stores have milliseconds. */
    @Override
    public long timeGrainMillis()
    {
        return 1_000;
    }

    @Override
    public void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException
    {
        input.readFully(position, buffer, offset, length);
    }

    @Override
    public void close()
            throws IOException
    {
        input.close();
    }
}
