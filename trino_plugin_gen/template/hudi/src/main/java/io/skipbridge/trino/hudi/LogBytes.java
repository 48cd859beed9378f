package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceFiles;

import java.io.EOFException;
import java.io.UncheckedIOException;

import static io.skipbridge.trino.read.merge.SliceFiles.LOG_PIECE;

/** The bytes of a log. Small logs are read in one request, large ones in pieces; the last pieces are kept, since blocks are opened anew. */
final class LogBytes
{
    private static final int KEPT = 2;

    private final SliceFiles files;
    private final int log;
    private final long size;
    private final byte[][] pieces = new byte[KEPT][];
    private final long[] ordinals = new long[KEPT];
    private int oldest;

    LogBytes(SliceFiles files, int log, long size)
    {
        this.files = files;
        this.log = log;
        this.size = size;
    }

    int log()
    {
        return log;
    }

    long size()
    {
        return size;
    }

    /** Reads up to {@code length} bytes, at least one; -1 at the end. */
    int read(long position, byte[] buffer, int offset, int length)
    {
        if (position >= size) {
            return -1;
        }
        byte[] piece = piece(position / LOG_PIECE);
        int start = (int) (position % LOG_PIECE);
        int count = Math.min(length, piece.length - start);
        System.arraycopy(piece, start, buffer, offset, count);
        return count;
    }

    /** A range of the log as a whole; its bytes are shared where they lie in one piece. */
    Range range(long position, int length)
    {
        if (length > 0 && position + length <= size && position / LOG_PIECE == (position + length - 1) / LOG_PIECE) {
            return new Range(piece(position / LOG_PIECE), (int) (position % LOG_PIECE));
        }
        byte[] copy = new byte[length];
        int done = 0;
        while (done < length) {
            int count = read(position + done, copy, done, length - done);
            if (count < 0) {
                throw new UncheckedIOException(new EOFException("a block ends at %d in a log of %d bytes".formatted(position + length, size)));
            }
            done += count;
        }
        return new Range(copy, 0);
    }

    record Range(byte[] bytes, int offset) {}

    private byte[] piece(long ordinal)
    {
        for (int i = 0; i < KEPT; i++) {
            if (pieces[i] != null && ordinals[i] == ordinal) {
                return pieces[i];
            }
        }
        byte[] piece = new byte[(int) Math.min(LOG_PIECE, size - ordinal * LOG_PIECE)];
        files.readLog(log, ordinal * LOG_PIECE, piece, 0, piece.length);
        pieces[oldest] = piece;
        ordinals[oldest] = ordinal;
        oldest = (oldest + 1) % KEPT;
        return piece;
    }

    long bytes()
    {
        long bytes = 0;
        for (byte[] piece : pieces) {
            bytes += piece == null ? 0 : piece.length;
        }
        return bytes;
    }

    /** Forgets the bytes that were kept. */
    void forget()
    {
        for (int i = 0; i < KEPT; i++) {
            pieces[i] = null;
        }
    }
}
