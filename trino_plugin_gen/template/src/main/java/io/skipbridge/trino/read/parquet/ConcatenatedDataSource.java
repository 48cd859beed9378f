package io.skipbridge.trino.read.parquet;

import com.google.common.collect.ListMultimap;
import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import io.skipbridge.trino.read.footer.ChunkFooter;
import io.trino.memory.context.AggregatedMemoryContext;
import io.trino.parquet.ChunkReader;
import io.trino.parquet.DiskRange;
import io.trino.parquet.ParquetCorruptionException;
import io.trino.parquet.ParquetDataSource;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.parquet.reader.ChunkedInputStream;

import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import static java.lang.Math.toIntExact;

/**
 * A data source of small files in memory, one after the other. One reader reads the row groups of all of them, and nothing is copied.
 */
final class ConcatenatedDataSource
        implements ParquetDataSource
{
    private final ParquetDataSourceId id;
    private final ChunkInflater inflater;
    private byte[][] files = new byte[16][];
    private long[] bases = new long[16];
    private int count;
    private long end;
    private byte[] lastFile;

    ConcatenatedDataSource(ParquetDataSourceId id, ChunkInflater inflater)
    {
        this.id = id;
        this.inflater = inflater;
    }

    /** Appends a file. Returns the position of its first byte. */
    long add(byte[] file)
    {
        lastFile = file;
        return append(file);
    }

    /** A chunk of the last added file without compression, or null if it is read as it is. */
    ChunkInflater.Inflated inflate(ChunkFooter chunk)
            throws IOException
    {
        return inflater.inflate(lastFile, chunk, id);
    }

    /** Appends bytes. Returns the position of the first one. */
    long append(byte[] file)
    {
        if (count == files.length) {
            files = Arrays.copyOf(files, count * 2);
            bases = Arrays.copyOf(bases, count * 2);
        }
        long base = end;
        files[count] = file;
        bases[count++] = base;
        end += file.length;
        return base;
    }

    @Override
    public ParquetDataSourceId getId()
    {
        return id;
    }

    @Override
    public long getReadBytes()
    {
        return end;
    }

    @Override
    public long getReadTimeNanos()
    {
        return 0;
    }

    @Override
    public long getEstimatedSize()
    {
        return end;
    }

    @Override
    public Slice readTail(int length)
            throws IOException
    {
        return readFully(end - length, length);
    }

    @Override
    public Slice readFully(long position, int length)
            throws IOException
    {
        int found = Arrays.binarySearch(bases, 0, count, position);
        int file = found >= 0 ? found : -found - 2;
        long offset = file < 0 ? -1 : position - bases[file];
        if (offset < 0 || length < 0 || offset + length > files[file].length) {
            throw new ParquetCorruptionException(id, "its footer names bytes that are outside the file");
        }
        return Slices.wrappedBuffer(files[file], toIntExact(offset), length);
    }

    @Override
    public <K> Map<K, ChunkedInputStream> planRead(ListMultimap<K, DiskRange> ranges, AggregatedMemoryContext memoryContext)
    {
        Map<K, ChunkedInputStream> streams = new HashMap<>();
        for (Map.Entry<K, Collection<DiskRange>> entry : ranges.asMap().entrySet()) {
            List<ChunkReader> chunks = entry.getValue().stream().<ChunkReader>map(Chunk::new).toList();
            streams.put(entry.getKey(), new ChunkedInputStream(chunks));
        }
        return streams;
    }

    private final class Chunk
            implements ChunkReader
    {
        private final DiskRange range;

        Chunk(DiskRange range)
        {
            this.range = range;
        }

        @Override
        public long getDiskOffset()
        {
            return NativeReader.offset(range);
        }

        @Override
        public Slice read()
                throws IOException
        {
            return readFully(NativeReader.offset(range), toIntExact(NativeReader.length(range)));
        }

        @Override
        public void free() {}
    }
}
