package io.skipbridge.trino.read.file;

import io.skipbridge.trino.read.storage.AheadRead;
import io.skipbridge.trino.read.storage.ReadBudget;
import io.skipbridge.trino.read.storage.ReadableFile;

import java.io.IOException;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;

/**
 * A large file of a remote store. Its reader names the pieces that it will ask for. Once it has asked for one, or {@link #readOn} was called, the next
 * ones behind it are read before they are asked for, as many as the window allows. Bytes that are in no piece are read when they are asked for.
 */
public final class AheadFile
        implements ReadableFile
{
    private static final long MAX_BYTES = 32 << 20;

    private final ReadableFile direct;
    private final PieceReader reader;
    private final ReadBudget budget;
    private final ReadCounters counters;
    private final AheadWindow window;
    private final NavigableMap<Long, Piece> pieces = new TreeMap<>();
    private int started;
    private long bytes;
    private long position;
    private boolean leftOut;

    /** Reads a range of the file, on any thread. */
    public interface PieceReader
    {
        byte[] read(long offset, int length)
                throws IOException;
    }

    /** @param direct reads, and counts, what is not read ahead */
    public AheadFile(ReadableFile direct, PieceReader reader, ReadBudget budget, ReadCounters counters, AheadWindow window)
    {
        this.direct = direct;
        this.reader = reader;
        this.budget = budget;
        this.counters = counters;
        this.window = window;
    }

    /** A piece that will be asked for. Nothing is read yet. One that overlaps an earlier one is not taken. */
    void expect(long offset, int length)
    {
        Map.Entry<Long, Piece> before = pieces.lowerEntry(offset + length);
        if (length > 0 && (before == null || before.getValue().end() <= offset)) {
            pieces.put(offset, new Piece(offset, length));
        }
    }

    /** The reader asks no more for pieces before the offset. If it left out one that was read for it, it may leave out others: no more are read ahead. */
    void forget(long offset)
    {
        for (Iterator<Piece> before = pieces.headMap(offset).values().iterator(); before.hasNext(); ) {
            Piece piece = before.next();
            leftOut |= piece.read != null && piece.held == null;
            piece.close();
            before.remove();
        }
    }

    /** Rows were handed out, and the engine wants more. */
    void readOn()
    {
        startMore(0);
    }

    @Override
    public long size()
    {
        return direct.size();
    }

    @Override
    public void readFully(long from, byte[] buffer, int offset, int length)
            throws IOException
    {
        for (int done = 0; done < length; ) {
            position = from + done;
            Piece piece = pieceAt(position);
            int copied;
            if (piece == null) {
                Long next = pieces.higherKey(position);
                copied = next == null ? length - done : (int) Math.min(length - done, next - position);
                direct.readFully(position, buffer, offset + done, copied);
            }
            else {
                startMore(piece.held == null ? 1 : 0);
                copied = (int) Math.min(length - done, piece.end() - position);
                System.arraycopy(piece.take(), (int) (position - piece.offset), buffer, offset + done, copied);
                if (position + copied == piece.end()) {
                    pieces.remove(piece.offset).close();
                }
            }
            done += copied;
        }
        position = from + length;
    }

    private Piece pieceAt(long from)
    {
        Map.Entry<Long, Piece> before = pieces.floorEntry(from);
        return before != null && before.getValue().end() > from ? before.getValue() : null;
    }

    /** @param inWork pieces that are asked for now, which come on top of those ahead */
    private void startMore(int inWork)
    {
        Piece current = pieceAt(position);
        for (Piece piece : pieces.tailMap(current == null ? position : current.offset).values()) {
            if (leftOut || started >= window.size() + inWork || (bytes > 0 && bytes + piece.length > MAX_BYTES)) {
                return;
            }
            if (!piece.start()) {
                return;
            }
        }
    }

    /** What was read ahead, or is on its way. */
    long bytes()
    {
        return bytes;
    }

    @Override
    public void close()
            throws IOException
    {
        pieces.values().forEach(Piece::close);
        pieces.clear();
        direct.close();
    }

    /** Some bytes of the file: expected, on their way, or held until the last of them was given. */
    private final class Piece
    {
        private final long offset;
        private final int length;
        private AheadRead read;
        private byte[] held;

        Piece(long offset, int length)
        {
            this.offset = offset;
            this.length = length;
        }

        long end()
        {
            return offset + length;
        }

        /** False if the budget is used up. */
        boolean start()
        {
            if (read != null || held != null) {
                return true;
            }
            Optional<AheadRead> begun = AheadRead.start(budget, length, () -> reader.read(offset, length));
            if (begun.isEmpty()) {
                return false;
            }
            read = begun.get();
            started++;
            bytes += length;
            return true;
        }

        byte[] take()
                throws IOException
        {
            if (held != null) {
                return held;
            }
            if (read == null) {
                window.took(true);
                byte[] found = new byte[length];
                direct.readFully(offset, found, 0, length);
                bytes += length;
                held = found;
                return held;
            }
            window.took(!read.isDone());
            long begun = System.nanoTime();
            started--;
            byte[] found = read.take();
            counters.read(length, System.nanoTime() - begun);
            held = found;
            return held;
        }

        void close()
        {
            if (read != null || held != null) {
                bytes -= length;
            }
            if (read != null && held == null) {
                started--;
                read.close();
            }
            read = null;
            held = null;
        }
    }
}
