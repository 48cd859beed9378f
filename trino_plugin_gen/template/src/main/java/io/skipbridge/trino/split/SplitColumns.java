package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ProtocolException;
import io.skipbridge.trino.wire.SplitBatch;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Reads the columns of a batch in place: S splits over F files, in the layout of bridge.thrift.
 *
 * <p>The constructor checks every offset, so that no accessor reads outside the payload.
 */
public final class SplitColumns
{
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
    private final int pathOffsets;
    private final int paths;

    public SplitColumns(SplitBatch batch)
    {
        this.splits = batch.splitCount();
        this.files = batch.fileCount();
        this.partitions = batch.partitions();
        this.payload = batch.payload().order(ByteOrder.LITTLE_ENDIAN);
        long position = 4L * (splits + 1);
        this.weights = (int) position;
        position += 4L * splits;
        position += 4L * splits; // reserved
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
        this.pathOffsets = (int) position;
        position += 4L * (files + 1);
        this.paths = (int) position;
        check(splits >= 0 && files >= 0 && position <= payload.limit(), "is shorter than its columns");
        check(payload.getInt(0) == 0 && payload.getInt(4 * splits) == files, "has splits that do not cover its files");
        for (int split = 0; split < splits; split++) {
            check(firstFile(split) <= firstFile(split + 1), "has a split with less than no file");
        }
        check(payload.getInt(pathOffsets) == 0 && position + payload.getInt(pathOffsets + 4 * files) <= payload.limit(), "is shorter than its paths");
        for (int file = 0; file < files; file++) {
            check(payload.getInt(pathOffsets + 4 * file) <= payload.getInt(pathOffsets + 4 * file + 4), "has a path with less than no bytes");
            int partition = partitionOrdinal(file);
            check(partition >= 0 && (partition < partitions.size() || partitions.isEmpty()), "names a partition it does not hold");
        }
    }

    private void check(boolean holds, String problem)
    {
        if (!holds) {
            throw new ProtocolException("split batch of %d splits, %d files and %d bytes %s".formatted(splits, files, payload.limit(), problem));
        }
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

    int partitionOrdinal(int file)
    {
        return payload.getInt(partitionOf + 4 * file);
    }

    PartitionEntry partition(int ordinal)
    {
        return partitions.isEmpty() ? PartitionEntry.NONE : partitions.get(ordinal);
    }

    int pathLength(int file)
    {
        return payload.getInt(pathOffsets + 4 * file + 4) - payload.getInt(pathOffsets + 4 * file);
    }

    int pathBytes(int firstFile, int endFile)
    {
        return payload.getInt(pathOffsets + 4 * endFile) - payload.getInt(pathOffsets + 4 * firstFile);
    }

    byte[] path(int file)
    {
        byte[] path = new byte[pathLength(file)];
        payload.get(paths + payload.getInt(pathOffsets + 4 * file), path);
        return path;
    }

    String pathText(int file)
    {
        return new String(path(file), StandardCharsets.UTF_8);
    }
}
