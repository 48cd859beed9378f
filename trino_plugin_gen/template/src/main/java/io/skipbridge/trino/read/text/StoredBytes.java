package io.skipbridge.trino.read.text;

import io.skipbridge.trino.read.storage.ReadableFile;

import java.io.IOException;

/** A file whose failures are told from those of the decoders that read it: these throw IOExceptions too. */
record StoredBytes(ReadableFile file)
        implements ReadableFile
{
    @Override
    public long size()
    {
        return file.size();
    }

    @Override
    public void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException
    {
        try {
            file.readFully(position, buffer, offset, length);
        }
        catch (IOException e) {
            throw new Problem(e);
        }
    }

    @Override
    public void close()
            throws IOException
    {
        file.close();
    }

    /** The storage did not give the bytes. */
    static final class Problem
            extends IOException
    {
        Problem(IOException cause)
        {
            super(cause.getMessage(), cause);
        }
    }
}
