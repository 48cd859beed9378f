package io.skipbridge.trino.read.file;

import io.skipbridge.trino.read.storage.ReadableFile;

import java.io.IOException;
import java.util.Optional;

/** A planned file, of which one range is in memory. It is opened when other bytes are asked for. Those of a remote store may be read ahead. */
public final class PlannedBytes
        implements ReadableFile
{
    /** Opens the file. */
    @FunctionalInterface
    public interface Opener
    {
        ReadableFile open()
                throws IOException;
    }

    private final long size;
    private final byte[] held;
    private final long heldFrom;
    private final Opener opener;
    private final boolean readsAhead;
    private ReadableFile file;

    /** @param readsAhead whether what is opened is an {@link AheadFile} */
    public PlannedBytes(long size, byte[] held, long heldFrom, boolean readsAhead, Opener opener)
    {
        this.readsAhead = readsAhead && held.length < size;
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

    /** Whether it helps to tell what will be asked for. */
    public boolean readsAhead()
    {
        return readsAhead;
    }

    /** These bytes will be asked for. */
    public void expect(long offset, int length)
            throws IOException
    {
        long from = offset < heldFrom ? offset : Math.max(offset, heldFrom + held.length);
        long end = Math.min(size, offset + length);
        if (readsAhead && from < end) {
            ahead().expect(from, (int) (end - from));
        }
    }

    /** All bytes behind those in memory will be asked for, in pieces of this length, up to the one with the end. */
    public void expectOn(long end, int piece)
            throws IOException
    {
        for (long from = heldFrom + held.length; from < Math.min(end, size); from += piece) {
            expect(from, piece);
        }
    }

    /** No more bytes before the offset are asked for. */
    public void forget(long offset)
            throws IOException
    {
        if (readsAhead) {
            ahead().forget(offset);
        }
    }

    /** Rows were handed out, and the engine wants more. */
    public void readOn()
            throws IOException
    {
        if (readsAhead) {
            ahead().readOn();
        }
    }

    private AheadFile ahead()
            throws IOException
    {
        return (AheadFile) opened();
    }

    private ReadableFile opened()
            throws IOException
    {
        if (file == null) {
            file = opener.open();
        }
        return file;
    }

    public long heldBytes()
    {
        return held.length + (file instanceof AheadFile ahead ? ahead.bytes() : 0);
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
        opened().readFully(position + copied, buffer, offset + copied, length - copied);
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
