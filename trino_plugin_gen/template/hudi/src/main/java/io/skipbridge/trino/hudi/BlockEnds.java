package io.skipbridge.trino.hudi;

import org.apache.hudi.common.table.log.HoodieLogFormat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Tells blocks that a writer left unfinished from damaged ones. Hudi's reader leaves out both, and what a damaged block changes or deletes would be
 * lost without a word. The rules are those of {@code bridge/formats/hudi/log_format.py}.
 */
final class BlockEnds
{
    private static final MemorySegment MAGIC = MemorySegment.ofArray(HoodieLogFormat.MAGIC);
    private static final ValueLayout.OfLong LENGTH = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private final String path;
    private final MemorySegment log;
    private final long size;

    BlockEnds(String path, byte[] bytes, int offset, int size)
    {
        this.path = path;
        this.log = MemorySegment.ofArray(bytes).asSlice(offset, size);
        this.size = size;
    }

    /** @throws io.skipbridge.trino.read.merge.UnsupportedSlice if a block is damaged */
    void check()
    {
        long start = 0;
        while (start + MAGIC.byteSize() <= size) {
            require(isMagic(start), start, "it does not begin with the magic bytes");
            long end = end(start);
            if (end < 0) {
                end = magic(start + MAGIC.byteSize(), size);
                end = end < 0 ? size : end;
                boolean whole = end - start >= MAGIC.byteSize() + 2 * Long.BYTES && length(end - Long.BYTES) == end - start - Long.BYTES;
                require(!whole, start, "its two lengths differ");
            }
            start = end;
        }
    }

    /** Where a block ends; -1 if the file, or the next block, begins before that. */
    private long end(long start)
    {
        long at = start + MAGIC.byteSize();
        if (at + Long.BYTES > size) {
            return -1;
        }
        long length = length(at);
        require(length >= Long.BYTES, start, "its length is " + length);
        if (length > size - at - Long.BYTES) {
            return -1;
        }
        long end = at + Long.BYTES + length;
        // the copy at the end counts the magic too
        long copy = length(end - Long.BYTES);
        if (copy == length + MAGIC.byteSize()) {
            require(isMagic(end) || size - end < MAGIC.byteSize(), start, "no other block follows it");
            return end;
        }
        // the next block may begin in the last bytes that this one claims
        boolean torn = magic(at, Math.min(size, end + MAGIC.byteSize() - 1)) >= 0;
        if (torn && (end == size || isMagic(end))) {
            // either this block ends here, or a later one does whose magic stands in between
            long inner = end - Long.BYTES - copy;
            torn = inner >= at && inner <= end - MAGIC.byteSize() && isMagic(inner);
        }
        require(torn, start, "its two lengths differ");
        return -1;
    }

    private long length(long at)
    {
        return log.get(LENGTH, at);
    }

    private boolean isMagic(long at)
    {
        return at + MAGIC.byteSize() <= size && log.asSlice(at, MAGIC.byteSize()).mismatch(MAGIC) < 0;
    }

    /** Where the next magic begins that ends before some byte; -1 if there is none. */
    private long magic(long from, long before)
    {
        for (long at = from; at + MAGIC.byteSize() <= before; at++) {
            if (isMagic(at)) {
                return at;
            }
        }
        return -1;
    }

    private void require(boolean sound, long start, String what)
    {
        if (!sound) {
            throw Positions.damaged("%s, at byte %d of %s".formatted(what, start, path), null);
        }
    }
}
