package io.skipbridge.trino.split;

import io.skipbridge.client.ProtocolException;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.skipbridge.trino.wire.SplitBatch;
import io.trino.spi.predicate.TupleDomain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads the columns of a batch in place: S splits over F files, in the layout of bridge.thrift.
 *
 * <p>The constructor checks every offset, so that no accessor reads outside the payload.
 */
public final class SplitColumns
{
    private final TupleDomain<BridgeColumnHandle> rowFilter;
    private final int splits;
    private final int files;
    private final List<PartitionEntry> partitions;
    private final ByteBuffer payload;
    private final int weights;
    private final int starts;
    private final int lengths;
    private final int sizes;
    private final int modified;
    private final int partitionOf;
    private final int readerOf;
    private final int pathOffsets;
    private final int paths;
    private final List<ReaderSpec> readers;
    private final int logs;
    private final int firstLogs;
    private final int logSizes;
    private final int logsModified;
    private final int logPathOffsets;
    private final int logPaths;
    private final ByteBuffer etagHashes;

    /** @param rowFilter of the plan: rows outside it are removed when the files are read */
    public SplitColumns(SplitBatch batch, TupleDomain<BridgeColumnHandle> rowFilter)
    {
        this.rowFilter = rowFilter;
        this.splits = batch.splitCount();
        this.files = batch.fileCount();
        this.partitions = batch.partitions();
        this.payload = batch.payload().order(ByteOrder.LITTLE_ENDIAN);
        long position = 4L * (splits + 1);
        this.weights = (int) position;
        position += 4L * splits;
        this.starts = (int) position;
        position += 8L * files;
        this.lengths = (int) position;
        position += 8L * files;
        this.sizes = (int) position;
        position += 8L * files;
        this.modified = (int) position;
        position += 8L * files;
        this.partitionOf = (int) position;
        position += 4L * files;
        this.readerOf = (int) position;
        position += 4L * files;
        this.pathOffsets = (int) position;
        position += 4L * (files + 1);
        this.paths = (int) position;
        check(splits >= 0 && files >= 0 && position <= payload.limit(), "is shorter than its columns");
        check(payload.getInt(0) == 0 && payload.getInt(4 * splits) == files, "has splits that do not cover its files");
        for (int split = 0; split < splits; split++) {
            check(firstFile(split) <= firstFile(split + 1), "has a split with less than no file");
        }
        position = checkPaths(pathOffsets, files, position);
        this.readers = batch.readers();
        this.logs = batch.logCount();
        this.firstLogs = (int) position;
        position += logs > 0 ? 4L * (files + 1) : 0;
        this.logSizes = (int) position;
        position += 8L * logs;
        this.logsModified = (int) position;
        position += 8L * logs;
        this.logPathOffsets = (int) position;
        position += logs > 0 ? 4L * (logs + 1) : 0;
        this.logPaths = (int) position;
        check(logs >= 0 && position <= payload.limit(), "is shorter than its logs");
        if (logs > 0) {
            position = checkPaths(logPathOffsets, logs, position);
            check(payload.getInt(firstLogs) == 0 && payload.getInt(firstLogs + 4 * files) == logs, "has files that do not cover its logs");
        }
        check(position == payload.limit(), "is longer than its columns");
        this.etagHashes = batch.etagHashes().order(ByteOrder.LITTLE_ENDIAN);
        check(!hasEtags() || etagHashes.limit() == 4L * files, "has etags of other files");
        for (int file = 0; file < files; file++) {
            check(logs == 0 || firstLog(file) <= firstLog(file + 1), "has a file with less than no log");
            int reader = payload.getInt(readerOf + 4 * file);
            check(reader >= 0 && reader < readers.size(), "names a reader it does not hold");
            int partition = partitionOrdinal(file);
            check(partition >= 0 && (partition < partitions.size() || partitions.isEmpty()), "names a partition it does not hold");
        }
    }

    /** The end of paths whose offsets are checked. */
    private long checkPaths(int offsets, int count, long position)
    {
        check(payload.getInt(offsets) == 0, "has paths that do not start at 0");
        for (int i = 0; i < count; i++) {
            check(payload.getInt(offsets + 4 * i) <= payload.getInt(offsets + 4 * i + 4), "has a path with less than no bytes");
        }
        long end = position + payload.getInt(offsets + 4 * count);
        check(end <= payload.limit(), "is shorter than its paths");
        return end;
    }

    private void check(boolean holds, String problem)
    {
        if (!holds) {
            throw new ProtocolException("split batch of %d splits, %d files and %d bytes %s".formatted(splits, files, payload.limit(), problem));
        }
    }

    TupleDomain<BridgeColumnHandle> rowFilter()
    {
        return rowFilter;
    }

    int files()
    {
        return files;
    }

    int splits()
    {
        return splits;
    }

    int firstFile(int split)
    {
        return payload.getInt(4 * split);
    }

    int weightThousandths(int split)
    {
        return payload.getInt(weights + 4 * split);
    }

    long start(int file)
    {
        return payload.getLong(starts + 8 * file);
    }

    long length(int file)
    {
        return payload.getLong(lengths + 8 * file);
    }

    long size(int file)
    {
        return payload.getLong(sizes + 8 * file);
    }

    long modified(int file)
    {
        return payload.getLong(modified + 8 * file);
    }

    /** Whether any file has an etag. */
    boolean hasEtags()
    {
        return etagHashes.limit() > 0;
    }

    /** 0 if none is known. */
    int etagHash(int file)
    {
        return hasEtags() ? etagHashes.getInt(4 * file) : 0;
    }

    int partitionOrdinal(int file)
    {
        return payload.getInt(partitionOf + 4 * file);
    }

    PartitionEntry partition(int ordinal)
    {
        return partitions.isEmpty() ? PartitionEntry.NONE : partitions.get(ordinal);
    }

    ReaderSpec reader(int file)
    {
        return readers.get(payload.getInt(readerOf + 4 * file));
    }

    List<LogFile> logs(int file)
    {
        if (logs == 0) {
            return List.of();
        }
        List<LogFile> found = new ArrayList<>();
        for (int log = firstLog(file); log < firstLog(file + 1); log++) {
            found.add(new LogFile(
                    new String(text(logPathOffsets, logPaths, log), StandardCharsets.UTF_8),
                    payload.getLong(logSizes + 8 * log),
                    payload.getLong(logsModified + 8 * log)));
        }
        return found;
    }

    private int firstLog(int file)
    {
        return payload.getInt(firstLogs + 4 * file);
    }

    int pathBytes(int firstFile, int endFile)
    {
        return payload.getInt(pathOffsets + 4 * endFile) - payload.getInt(pathOffsets + 4 * firstFile);
    }

    byte[] path(int file)
    {
        return text(pathOffsets, paths, file);
    }

    private byte[] text(int offsets, int start, int ordinal)
    {
        int first = payload.getInt(offsets + 4 * ordinal);
        byte[] text = new byte[payload.getInt(offsets + 4 * ordinal + 4) - first];
        payload.get(start + first, text);
        return text;
    }

    String pathText(int file)
    {
        return new String(path(file), StandardCharsets.UTF_8);
    }
}
