package io.skipbridge.trino.read;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.ConstantColumns;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.OpenFile;
import io.skipbridge.trino.read.file.RowFormat;
import io.skipbridge.trino.read.hudi.MergePageSource;
import io.skipbridge.trino.read.hudi.PlannedSliceFiles;
import io.skipbridge.trino.read.merge.MergedPages;
import io.skipbridge.trino.read.merge.RowPages;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.page.FilesPageSource;
import io.skipbridge.trino.read.parquet.ParquetFormat;
import io.skipbridge.trino.read.storage.AheadRead;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.read.storage.ReadBudget;
import io.skipbridge.trino.split.LogFile;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.parquet.writer.ParquetSchemaConverter;
import io.trino.parquet.writer.ParquetWriter;
import io.trino.parquet.writer.ParquetWriterOptions;
import io.trino.spi.Page;
import io.trino.spi.TrinoException;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;
import org.apache.parquet.format.CompressionCodec;
import org.joda.time.DateTimeZone;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import static io.trino.spi.type.BigintType.BIGINT;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Page sources over a store that answers late, asked in any order that the engine may ask in. */
class TestReadsAhead
{
    private static final BridgeColumnHandle X = new BridgeColumnHandle("x", BIGINT, ColumnKind.DATA, 0);
    private static final BridgeColumnHandle DAY = new BridgeColumnHandle("day", BIGINT, ColumnKind.PARTITION_KEY, 0);

    private final FakeS3 store;
    private final FileOpener opener;
    private TupleDomain<BridgeColumnHandle> predicate = TupleDomain.all();

    TestReadsAhead()
            throws IOException
    {
        store = new FakeS3();
        opener = store.opener();
    }

    @AfterEach
    void close()
    {
        opener.close();
        store.close();
    }

    /** The law: no row of a file that may match is lost, none is doubled, and nothing is kept. */
    @Test
    void filesHaveTheirRows()
            throws Exception
    {
        for (int seed = 0; seed < 12; seed++) {
            Random random = new Random(seed);
            List<PlannedFile> files = IntStream.range(0, 1 + random.nextInt(40)).mapToObj(day -> file(day, random.nextInt(6) == 0 ? 0 : random.nextInt(200))).toList();
            assertRows(random, files, new FilesPageSource(scan(random), new Bytes(), files));
        }
    }

    @Test
    void slicesHaveTheirRows()
            throws Exception
    {
        for (int seed = 0; seed < 12; seed++) {
            Random random = new Random(seed);
            List<PlannedFile> slices = IntStream.range(0, 1 + random.nextInt(20)).mapToObj(day -> slice(day, 1 + random.nextInt(4))).toList();
            FileScan scan = scan(random);
            assertRows(random, slices, new MergePageSource(scan, slices, opener(scan), () -> Merged::new));
        }
    }

    @Test
    void aSliceThatCannotBeOpenedKeepsNothing()
            throws Exception
    {
        List<PlannedFile> slices = List.of(slice(0, 2), slice(1, 2));
        MergePageSource source = new MergePageSource(scan(new Random(1)), slices, (_, _, _) -> {
            throw new IllegalStateException("no versions");
        }, () -> Merged::new);
        source.isBlocked().get(10, SECONDS);
        assertThrows(TrinoException.class, source::getNextSourcePage);
        source.close();
        assertUnused();
    }

    @Test
    void aBaseFileOfAnotherVersionIsRefusedAlsoIfItIsNotReadAhead()
            throws Exception
    {
        PlannedFile slice = sliceOverBase(1);
        for (boolean ahead : new boolean[] {true, false}) {
            Optional<AheadRead> others = ahead ? Optional.empty() : AheadRead.start(opener.budget(), budgetBytes(), () -> new byte[0]);
            try (MergePageSource source = merged(slice)) {
                TrinoException refused = assertThrows(TrinoException.class, source::getNextSourcePage);
                assertTrue(refused.getMessage().contains("another ETag"), refused.getMessage());
            }
            others.ifPresent(AheadRead::close);
            assertUnused();
        }
    }

    @Test
    void theTimeOfABaseFilesReadIsCounted()
            throws Exception
    {
        PlannedFile slice = sliceOverBase(0);
        for (boolean asks : new boolean[] {false, true}) {
            store.leastMillis = 200;
            try (MergePageSource source = merged(slice)) {
                if (asks) {
                    source.isBlocked().get(10, SECONDS);
                }
                assertEquals(50, source.getNextSourcePage().getPositionCount());
                long millis = source.getReadTimeNanos() / 1_000_000;
                assertTrue(millis >= 200, "%d ms".formatted(millis));
                assertEquals(slice.size(), source.getCompletedBytes());
            }
        }
    }

    private void assertRows(Random random, List<PlannedFile> files, ConnectorPageSource source)
            throws Exception
    {
        predicate = TupleDomain.all();
        boolean loses = random.nextInt(6) == 0;
        boolean stops = random.nextInt(6) == 0;
        Optional<AheadRead> held = random.nextInt(3) == 0
                ? AheadRead.start(opener.budget(), budgetBytes() - random.nextInt(600), () -> new byte[0])
                : Optional.empty();
        List<String> found = new ArrayList<>();
        boolean failed = false;
        try (source) {
            for (int step = 0; !source.isFinished() && !(stops && step > 5); step++) {
                if (loses && step == 3) {
                    store.objects.remove(key(files.getLast()));
                }
                if (random.nextInt(8) == 0) {
                    skip(random.nextInt(files.size()));
                }
                for (int asked = random.nextInt(3); asked > 0; asked--) {
                    CompletableFuture<?> blocked = source.isBlocked();
                    if (random.nextBoolean()) {
                        blocked.get(10, SECONDS);
                    }
                }
                assertTrue(source.getMemoryUsage() >= 0);
                SourcePage page = source.getNextSourcePage();
                for (int i = 0; page != null && i < page.getPositionCount(); i++) {
                    found.add("%d %d".formatted(BIGINT.getLong(page.getBlock(0), i), BIGINT.getLong(page.getBlock(1), i)));
                }
            }
        }
        catch (TrinoException e) {
            assertTrue(loses && e.getMessage().contains("is gone"), e.toString());
            failed = true;
        }
        source.close();
        assertTrue(failed || source.getMemoryUsage() == 0);
        held.ifPresent(AheadRead::close);
        assertUnused();
        assertEquals(found.size(), new HashSet<>(found).size(), "rows are doubled");
        Set<String> all = new TreeSet<>();
        Set<String> needed = new TreeSet<>();
        for (PlannedFile file : files) {
            boolean may = new ConstantColumns(List.of(DAY, X)).mayMatch(file, predicate);
            List<String> rows = rows(file);
            all.addAll(rows);
            needed.addAll(may ? rows : List.of());
        }
        assertTrue(all.containsAll(found), "rows that no file has");
        if (!failed && !stops) {
            assertTrue(new HashSet<>(found).containsAll(needed), "rows are lost");
        }
    }

    private void skip(int day)
    {
        Domain others = Domain.singleValue(BIGINT, (long) day).complement();
        predicate = predicate.intersect(TupleDomain.withColumnDomains(Map.of(DAY, others)));
    }

    private static int budgetBytes()
    {
        return (int) (Runtime.getRuntime().maxMemory() / 16);
    }

    private void assertUnused()
            throws InterruptedException
    {
        ReadBudget budget = opener.budget();
        for (int i = 0; i < 1_000 && budget.requestsInFlight() > 0; i++) {
            Thread.sleep(10);
        }
        assertEquals(0, budget.requestsInFlight());
        Optional<AheadRead> all = AheadRead.start(budget, budgetBytes(), () -> new byte[0]);
        assertTrue(all.isPresent(), "bytes are kept");
        all.get().close();
        for (int i = 0; i < 1_000 && budget.requestsInFlight() > 0; i++) {
            Thread.sleep(1);
        }
    }

    private FileScan scan(Random random)
    {
        return new FileScan(FakeS3.session(), opener, DateTimeZone.UTC, List.of(DAY, X), () -> predicate, new AtomicInteger(random.nextInt(20)));
    }

    private MergePageSource.SliceOpener opener(FileScan scan)
    {
        return (slice, first, counters) -> new PlannedSliceFiles(slice, first, Optional.empty(), scan, _ -> null, counters);
    }

    private static String key(PlannedFile file)
    {
        String uri = file.logs().isEmpty() ? file.path() : file.logs().getLast().path();
        return uri.substring(FakeS3.uri("").length());
    }

    /** A row for each byte of a file: its day and, distinct within the day, its place and value. */
    private static List<String> rows(PlannedFile file)
    {
        long day = Long.parseLong(file.partition().values().getFirst());
        List<String> rows = new ArrayList<>();
        if (file.logs().isEmpty()) {
            IntStream.range(0, (int) file.size()).forEach(at -> rows.add("%d %d".formatted(day, value(day, at))));
        }
        for (int log = 0; log < file.logs().size(); log++) {
            long base = log * 1_000L;
            IntStream.range(0, (int) file.logs().get(log).size()).forEach(at -> rows.add("%d %d".formatted(day, value(day, base + at))));
        }
        return rows;
    }

    private static long value(long day, long at)
    {
        return at * 256 + (byte) (day * 31 + at * 7);
    }

    private byte[] content(long day, int base, int size)
    {
        byte[] content = new byte[size];
        for (int at = 0; at < size; at++) {
            content[at] = (byte) (day * 31 + (base + at) * 7);
        }
        return content;
    }

    private PlannedFile file(int day, int size)
    {
        store.objects.put("f" + day, content(day, 0, size));
        return new PlannedFile(FakeS3.uri("f" + day), 0, size, size, FakeS3.TIME, partition(day), ReaderSpec.PARQUET, List.of());
    }

    private PlannedFile slice(int day, int logs)
    {
        List<LogFile> planned = IntStream.range(0, logs).mapToObj(log -> {
            int size = (day * 37 + log * 11) % 90 + 1;
            String key = "l%d-%d".formatted(day, log);
            store.objects.put(key, content(day, log * 1_000, size));
            return new LogFile(FakeS3.uri(key), size, FakeS3.TIME);
        }).toList();
        return new PlannedFile("", 0, 0, -1, -1, partition(day), ReaderSpec.PARQUET, planned);
    }

    /** A slice of a base file of 50 rows and a log of a byte. */
    private PlannedFile sliceOverBase(int etagHash)
            throws IOException
    {
        byte[] base = parquet(page(0, content(0, 0, 50)));
        store.objects.put("base", base);
        store.objects.put("log", new byte[1]);
        List<LogFile> logs = List.of(new LogFile(FakeS3.uri("log"), 1, FakeS3.TIME));
        return new PlannedFile(FakeS3.uri("base"), 0, base.length, base.length, FakeS3.TIME, partition(0), ReaderSpec.PARQUET, logs, etagHash);
    }

    /** The rows of a slice's base file. */
    private MergePageSource merged(PlannedFile slice)
    {
        FileScan scan = scan(new Random(1));
        MergePageSource.SliceOpener files = (planned, first, counters) -> new PlannedSliceFiles(planned, first, Optional.empty(), scan, new ParquetFormat()::context, counters);
        return new MergePageSource(scan, List.of(slice), files, () -> Base::new);
    }

    private static PartitionEntry partition(int day)
    {
        return new PartitionEntry("day=" + day, List.of(String.valueOf(day)), new boolean[] {false});
    }

    private static Page page(long from, byte[] bytes)
    {
        BlockBuilder builder = BIGINT.createFixedSizeBlockBuilder(bytes.length);
        for (int i = 0; i < bytes.length; i++) {
            BIGINT.writeLong(builder, (from + i) * 256 + bytes[i]);
        }
        return new Page(builder.build());
    }

    /** A row for each byte, in pages of seven. */
    private static final class Bytes
            implements RowFormat
    {
        private static final int PIECE = 30;

        @Override
        public String spelled()
        {
            return "bytes";
        }

        @Override
        public AheadRange ahead()
        {
            return AheadRange.begin(64, 16);
        }

        @Override
        public FileReader open(FileScan scan, OpenFile file, TupleDomain<BridgeColumnHandle> predicate)
                throws IOException
        {
            for (long at = 0; at < file.bytes().size(); at += PIECE) {
                file.bytes().expect(at, PIECE);
            }
            return new FileReader()
            {
                private long position;

                @Override
                public SourcePage next()
                        throws IOException
                {
                    int length = (int) Math.min(7, file.bytes().size() - position);
                    if (length == 0) {
                        return null;
                    }
                    byte[] bytes = new byte[length];
                    file.bytes().readFully(position, bytes, 0, length);
                    position += length;
                    return SourcePage.create(page(position - length, bytes));
                }
            };
        }
    }

    private static byte[] parquet(Page rows)
            throws IOException
    {
        ParquetSchemaConverter schema = new ParquetSchemaConverter(List.of(BIGINT), List.of("x"), false, false);
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        try (ParquetWriter writer = new ParquetWriter(
                file,
                schema.getMessageType(),
                schema.getPrimitiveTypes(),
                ParquetWriterOptions.builder().build(),
                CompressionCodec.UNCOMPRESSED,
                "test",
                Optional.empty(),
                Optional.empty())) {
            writer.write(rows);
        }
        return file.toByteArray();
    }

    /** The rows of the base file. */
    private static final class Base
            implements MergedPages
    {
        private final RowPages rows;

        Base(SliceRequest request)
        {
            try {
                rows = request.files().readBase(request.columns());
            }
            catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public Page next()
                throws IOException
        {
            return rows.next();
        }

        @Override
        public long memoryBytes()
        {
            return 0;
        }

        @Override
        public void close()
                throws IOException
        {
            rows.close();
        }
    }

    /** A row for each byte of the logs, a page for each log. */
    private static final class Merged
            implements MergedPages
    {
        private final SliceRequest request;
        private int next;

        Merged(SliceRequest request)
        {
            this.request = request;
        }

        @Override
        public Page next()
        {
            if (next == request.logs().size()) {
                return null;
            }
            byte[] bytes = new byte[(int) request.logs().get(next).size()];
            request.files().readLog(next, 0, bytes, 0, bytes.length);
            return page(next++ * 1_000L, bytes);
        }

        @Override
        public long memoryBytes()
        {
            return 0;
        }

        @Override
        public void close() {}
    }
}
