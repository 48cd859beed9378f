package io.skipbridge.trino.read.parquet;

import com.google.common.collect.ArrayListMultimap;
import com.google.common.collect.ListMultimap;
import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import io.skipbridge.trino.read.file.AheadWindow;
import io.skipbridge.trino.read.file.ReadCounters;
import io.skipbridge.trino.read.footer.Footer;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.read.footer.RowGroupFooter;
import io.skipbridge.trino.read.storage.AheadRead;
import io.skipbridge.trino.read.storage.RangeDataSource;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.memory.context.AggregatedMemoryContext;
import io.trino.memory.context.LocalMemoryContext;
import io.trino.parquet.ChunkReader;
import io.trino.parquet.DiskRange;
import io.trino.parquet.ParquetDataSourceId;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

import static java.lang.Math.toIntExact;

/**
 * A data source over a large file of a remote store. Merges ranges as Trino's data sources do, and reads some of them before they are needed: those that
 * start the columns of the first row group, since the page source needs all of them for its first page; and once a page was handed out, those of the
 * columns that the engine loads.
 */
final class AheadDataSource
        extends RangeDataSource
{
    private static final long MAX_BYTES = 32 << 20;

    private final ScanContext scan;
    private final PlannedFile file;
    private final ReadCounters counters;
    private final AheadWindow window;
    private final int maxMergeDistance;
    private final int maxLength;
    private final TreeMap<Long, Chunk> chunks = new TreeMap<>();
    private final List<Read> reads = new ArrayList<>();
    private int position;
    private boolean goesOn;
    private int startedReads;
    private long startedBytes;

    /** A column chunk: the ordinal of its row group and its column's path. */
    private record Chunk(int rowGroup, String column) {}

    /** A range that is read for {@code key}; {@code alone}: it is a piece of a range too long for one read. */
    private record Range<K>(K key, long offset, int length, boolean alone) {}

    AheadDataSource(ParquetDataSourceId id, ReadableFile opened, ScanContext scan, PlannedFile file, ReadCounters counters, AheadWindow window)
    {
        super(id, opened, scan.options());
        this.scan = scan;
        this.file = file;
        this.counters = counters;
        this.window = window;
        this.maxMergeDistance = toIntExact(scan.options().getMaxMergeDistance().toBytes());
        this.maxLength = toIntExact(scan.options().getMaxBufferSize().toBytes());
    }

    /** Names the column chunks that a reader will ask for. Before, nothing is read ahead. */
    void expect(Footer footer, ReadSchema schema)
    {
        int ordinal = 0;
        for (RowGroupFooter group : footer.rowGroups()) {
            for (int i = 0; i < group.chunks().length; i++) {
                chunks.put(group.chunks()[i].startingPosition(), new Chunk(ordinal, String.join(".", schema.descriptor(i).getPath())));
            }
            ordinal++;
        }
    }

    /** The engine wants more rows than the first page: reads ahead of it from now on. */
    void readOn()
    {
        goesOn = true;
        startMore();
    }

    @Override
    public <K> ListMultimap<K, ChunkReader> planChunksRead(ListMultimap<K, DiskRange> ranges, AggregatedMemoryContext memory)
    {
        if (chunks.isEmpty()) {
            return super.planChunksRead(ranges, memory);
        }
        ListMultimap<K, ChunkReader> readers = ArrayListMultimap.create();
        Set<String> begun = new HashSet<>();
        Read last = null;
        for (Range<K> range : sorted(ranges)) {
            Chunk chunk = chunks.floorEntry(range.offset()).getValue();
            if (last == null || range.alone() || !last.extend(range.offset(), range.length())) {
                last = new Read(reads.size(), range.offset(), range.length(), range.alone(), memory);
                reads.add(last);
            }
            last.columns.add(chunk.column());
            last.initial |= chunk.rowGroup() == chunks.floorEntry(reads.getFirst().offset).getValue().rowGroup() && begun.add(chunk.column());
            last.references++;
            readers.put(range.key(), new Part(last, range.offset(), range.length(), chunk.column()));
        }
        startMore();
        return readers;
    }

    private <K> List<Range<K>> sorted(ListMultimap<K, DiskRange> ranges)
    {
        List<Range<K>> sorted = new ArrayList<>();
        for (Map.Entry<K, DiskRange> entry : ranges.entries()) {
            long offset = NativeReader.offset(entry.getValue());
            long left = NativeReader.length(entry.getValue());
            boolean alone = left > maxLength;
            do {
                int length = (int) Math.min(left, maxLength);
                sorted.add(new Range<>(entry.getKey(), offset, length, alone));
                offset += length;
                left -= length;
            }
            while (left > 0);
        }
        sorted.sort(Comparator.comparingLong(Range::offset));
        return sorted;
    }

    private void startMore()
    {
        for (int i = position; i < reads.size(); i++) {
            Read read = reads.get(i);
            if (!read.mayStart()) {
                continue;
            }
            boolean room = read.initial || startedReads < window.size();
            if (!room || (startedBytes > 0 && startedBytes + read.length > MAX_BYTES) || !read.start()) {
                return;
            }
        }
    }

    @Override
    public void close()
            throws IOException
    {
        reads.forEach(Read::stop);
        super.close();
    }

    /** One request. It ends when all of its parts are freed. */
    private final class Read
    {
        private final int ordinal;
        private final long offset;
        private final boolean alone;
        private final LocalMemoryContext memory;
        private final Set<String> columns = new HashSet<>();
        private int length;
        private int references;
        private boolean initial;
        private boolean needed;
        private Optional<AheadRead> ahead = Optional.empty();
        private Slice data;

        Read(int ordinal, long offset, int length, boolean alone, AggregatedMemoryContext memory)
        {
            this.ordinal = ordinal;
            this.offset = offset;
            this.length = length;
            this.alone = alone;
            this.memory = memory.newLocalMemoryContext(AheadDataSource.class.getSimpleName());
        }

        boolean extend(long nextOffset, int nextLength)
        {
            long end = Math.max(offset + length, nextOffset + nextLength);
            if (alone || nextOffset - (offset + length) > maxMergeDistance || end - offset > maxLength) {
                return false;
            }
            length = (int) (end - offset);
            return true;
        }

        boolean mayStart()
        {
            return !needed && ahead.isEmpty() && references > 0 && (initial || (goesOn && columns.stream().anyMatch(scan.loaded()::contains)));
        }

        boolean start()
        {
            ahead = AheadRead.start(scan.files().budget(), length, this::fetch);
            if (ahead.isPresent()) {
                memory.setBytes(length);
                startedReads++;
                startedBytes += length;
            }
            return ahead.isPresent();
        }

        private byte[] fetch()
                throws IOException
        {
            // the file that is already open may not be read by two threads
            try (ReadableFile opened = scan.files().open(scan.session(), file)) {
                byte[] bytes = new byte[length];
                opened.readFully(offset, bytes, 0, length);
                return bytes;
            }
        }

        Slice read(String column)
                throws IOException
        {
            if (!initial) {
                scan.loaded().add(column);
            }
            if (data == null) {
                needed = true;
                position = Math.max(position, ordinal);
                memory.setBytes(length);
                startMore();
                window.took(ahead.isEmpty() || !ahead.get().isDone());
                data = ahead.isPresent() ? taken(ahead.get()) : readFully(offset, length);
            }
            return data;
        }

        private Slice taken(AheadRead read)
        {
            started(read);
            long start = System.nanoTime();
            byte[] bytes;
            try {
                bytes = read.take();
            }
            catch (IOException e) {
                throw ReadableFile.unreadable(file.path(), e);
            }
            counters.read(bytes.length, System.nanoTime() - start);
            return Slices.wrappedBuffer(bytes);
        }

        private void started(AheadRead read)
        {
            ahead = Optional.empty();
            startedReads--;
            startedBytes -= read.length();
        }

        void free()
        {
            references--;
            if (references == 0) {
                stop();
            }
        }

        void stop()
        {
            ahead.ifPresent(read -> {
                started(read);
                read.close();
            });
            references = 0;
            data = null;
            memory.setBytes(0);
        }
    }

    /** The part of a read that belongs to one column chunk. */
    private record Part(Read whole, long offset, int length, String column)
            implements ChunkReader
    {
        @Override
        public long getDiskOffset()
        {
            return offset;
        }

        @Override
        public Slice read()
                throws IOException
        {
            return whole.read(column).slice(toIntExact(offset - whole.offset), length);
        }

        @Override
        public void free()
        {
            whole.free();
        }
    }
}
