package io.skipbridge.trino.read.storage;

import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoInput;
import io.trino.filesystem.TrinoInputFile;
import io.trino.filesystem.TrinoInputStream;

import java.io.EOFException;
import java.io.IOException;
import java.time.Instant;
import java.util.Objects;

/**
 * A planned file for readers that take Trino's input files. Closing its streams leaves the planned file open. Storage that does not give the bytes is
 * FILE_UNREADABLE, and no IOException: some decoders take one for the end of the file and lose the rows behind it.
 */
public final class PlannedInputFile
        implements TrinoInputFile
{
    /** The length of the pieces in which a stream is read. */
    public static final int BUFFER = 1 << 20;

    private final String path;
    private final ReadableFile file;

    public PlannedInputFile(String path, ReadableFile file)
    {
        this.path = path;
        this.file = file;
    }

    @Override
    public TrinoInput newInput()
    {
        return new Input();
    }

    @Override
    public TrinoInputStream newStream()
    {
        return new Stream();
    }

    @Override
    public long length()
    {
        return file.size();
    }

    @Override
    public Instant lastModified()
    {
        throw new UnsupportedOperationException("readers of rows do not ask for times");
    }

    @Override
    public boolean exists()
    {
        return true;
    }

    @Override
    public Location location()
    {
        return Location.of(path);
    }

    private void stored(long position, byte[] buffer, int offset, int length)
    {
        try {
            file.readFully(position, buffer, offset, length);
        }
        catch (IOException e) {
            throw ReadableFile.unreadable(path, e);
        }
    }

    private final class Input
            implements TrinoInput
    {
        @Override
        public void readFully(long position, byte[] buffer, int offset, int length)
        {
            stored(position, buffer, offset, length);
        }

        @Override
        public int readTail(byte[] buffer, int offset, int length)
        {
            int read = (int) Math.min(file.size(), length);
            stored(file.size() - read, buffer, offset, read);
            return read;
        }

        @Override
        public void close() {}
    }

    /** Reads in pieces, from where it was set to. */
    private final class Stream
            extends TrinoInputStream
    {
        private byte[] buffer = {};
        private long bufferedFrom;
        private long position;

        @Override
        public long getPosition()
        {
            return position;
        }

        @Override
        public void seek(long to)
                throws IOException
        {
            if (to < 0 || to > file.size()) {
                throw new EOFException("byte %d of %d of %s".formatted(to, file.size(), path));
            }
            position = to;
        }

        @Override
        public int available()
        {
            return (int) Math.max(0, bufferedFrom + buffer.length - position);
        }

        @Override
        public long skip(long count)
        {
            long skipped = Math.clamp(count, 0, file.size() - position);
            position += skipped;
            return skipped;
        }

        @Override
        public int read()
        {
            return fill() ? buffer[(int) (position++ - bufferedFrom)] & 0xFF : -1;
        }

        @Override
        public int read(byte[] bytes, int offset, int length)
        {
            Objects.checkFromIndexSize(offset, length, bytes.length);
            if (length == 0) {
                return 0;
            }
            if (!fill()) {
                return -1;
            }
            int read = (int) Math.min(length, bufferedFrom + buffer.length - position);
            System.arraycopy(buffer, (int) (position - bufferedFrom), bytes, offset, read);
            position += read;
            return read;
        }

        private boolean fill()
        {
            if (position >= bufferedFrom && position < bufferedFrom + buffer.length) {
                return true;
            }
            int next = (int) Math.min(BUFFER, file.size() - position);
            if (next <= 0) {
                return false;
            }
            byte[] filled = new byte[next];
            stored(position, filled, 0, next);
            buffer = filled;
            bufferedFrom = position;
            return true;
        }
    }
}
