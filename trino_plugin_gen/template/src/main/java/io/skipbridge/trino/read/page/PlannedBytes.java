package io.skipbridge.trino.read.page;

import io.skipbridge.trino.read.storage.ReadableFile;

import java.io.IOException;
import java.util.Optional;

/** A planned file, of which one range is in memory. It is opened when other bytes are asked for. */
public final class PlannedBytes
        implements ReadableFile
{
    /** Opens the file. */
    @FunctionalInterface
    interface Opener
    {
        ReadableFile open()
                throws IOException;
    }

    private final long size;
    private final byte[] held;
    private final long heldFrom;
    private final Opener opener;
    private ReadableFile file;

    PlannedBytes(long size, byte[] held, long heldFrom, Opener opener)
    {
        this.size = size;
        this.held = held;
        this.heldFrom = heldFrom;
        this.opener = opener;
    }

    /** All of the file, if that is in memory; not a copy. */
    public Optional<byte[]> whole()
    {
        return held.length == size ? Optional.of(held) : Optional.empty();
    }

    long heldBytes()
    {
        return held.length;
    }

    @Override
    public long size()
    {
        return size;
    }

    @Override
    public void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException
    {
        long heldTo = heldFrom + held.length;
        int copied = position < heldFrom ? 0 : (int) Math.clamp(heldTo - position, 0, length);
        if (copied > 0) {
            System.arraycopy(held, (int) (position - heldFrom), buffer, offset, copied);
        }
        if (copied == length) {
            return;
        }
        if (file == null) {
            file = opener.open();
        }
        file.readFully(position + copied, buffer, offset + copied, length - copied);
    }

    @Override
    public void close()
            throws IOException
    {
        if (file != null) {
            file.close();
        }
    }
}
