package io.skipbridge.trino.hudi;

import org.apache.hudi.io.SeekableDataInputStream;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;

/** A log as Hudi reads it. */
final class LogStream
        extends SeekableDataInputStream
{
    private final Position position;

    private LogStream(Position position)
    {
        super(position);
        this.position = position;
    }

    static LogStream open(LogBytes log)
    {
        return new LogStream(new Position(log));
    }

    @Override
    public long getPos()
    {
        return position.next;
    }

    @Override
    public void seek(long target)
            throws IOException
    {
        // a damaged block may tell any length
        if (target < 0 || target > position.log.size()) {
            throw new EOFException("position %d is outside of a log of %d bytes".formatted(target, position.log.size()));
        }
        position.next = target;
    }

    private static final class Position
            extends InputStream
    {
        private final LogBytes log;
        private long next;

        Position(LogBytes log)
        {
            this.log = log;
        }

        @Override
        public int read()
        {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
        }

        @Override
        public int read(byte[] buffer, int offset, int length)
        {
            if (length == 0) {
                return 0;
            }
            int count = log.read(next, buffer, offset, length);
            next += Math.max(count, 0);
            return count;
        }

        @Override
        public long skip(long count)
        {
            long skipped = Math.clamp(count, 0, log.size() - next);
            next += skipped;
            return skipped;
        }

        @Override
        public int available()
        {
            return (int) Math.min(Integer.MAX_VALUE, log.size() - next);
        }
    }
}
