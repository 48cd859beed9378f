package io.skipbridge.trino.read.hudi;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.read.file.ConstantColumns;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.ReadCounters;
import io.skipbridge.trino.read.merge.MergedPages;
import io.skipbridge.trino.read.merge.SliceMerger;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.skipbridge.trino.read.parquet.CombinedFilesLoader;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.LogFile;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.Page;
import io.trino.spi.TrinoException;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestMergePageSource
{
    private static final BridgeColumnHandle X = new BridgeColumnHandle("x", BIGINT, ColumnKind.DATA, 0);
    private static final BridgeColumnHandle DAY = new BridgeColumnHandle("day", VARCHAR, ColumnKind.PARTITION_KEY, 0);

    private static final FileOpener LOCAL = FileOpener.create(Set.of(), Map.of(), Optional.empty(), "test", null);

    @TempDir
    private Path directory;
    private final List<SliceRequest> merged = new ArrayList<>();

    @Test
    void aPredicateOnRowsSkipsNoSliceAndNoRow()
    {
        TupleDomain<BridgeColumnHandle> predicate = TupleDomain.withColumnDomains(Map.of(X, Domain.singleValue(BIGINT, 99L)));
        assertEquals(List.of("1 a", "2 a", "1 b", "2 b"), read(predicate, slice("a", 10), slice("b", 10)));
        assertEquals(List.of(new SliceRequest.Column("x", BIGINT)), merged.getFirst().columns());
    }

    @Test
    void aPredicateOnPartitionKeysSkipsSlices()
    {
        TupleDomain<BridgeColumnHandle> predicate = TupleDomain.withColumnDomains(Map.of(DAY, Domain.singleValue(VARCHAR, utf8Slice("b"))));
        assertEquals(List.of("1 b", "2 b"), read(predicate, slice("a", 10), slice("b", 10)));
        assertEquals(1, merged.size());
    }

    @Test
    void aSliceOfLogsAloneHasNoBaseFile()
    {
        assertEquals(List.of("1 a", "2 a"), read(TupleDomain.all(), slice("a", -1)));
        assertEquals(Optional.empty(), merged.getFirst().basePath());
        assertEquals("value", merged.getFirst().properties().get("key"));
    }

    @Test
    void aLogIsReadUpToItsPlannedLengthAndMayGrow()
            throws IOException
    {
        Path log = directory.resolve("log");
        Files.writeString(log, "1234");
        LogFile planned = new LogFile("file://" + log, 4, Files.getLastModifiedTime(log).toMillis());
        PlannedFile slice = new PlannedFile("", 0, 0, -1, -1, PartitionEntry.NONE, ReaderSpec.PARQUET, List.of(planned));
        for (String content : List.of("1234", "123456")) {
            Files.writeString(log, content);
            if (content.length() == 4) {
                Files.setLastModifiedTime(log, FileTime.fromMillis(planned.modifiedMillis()));
            }
            try (PlannedSliceFiles files = filesOf(slice, LOCAL)) {
                byte[] bytes = new byte[4];
                files.readLog(0, 0, bytes, 0, 4);
                assertEquals("1234", new String(bytes));
            }
        }
        for (String content : List.of("123", "")) {
            Files.writeString(log, content);
            try (PlannedSliceFiles files = filesOf(slice, LOCAL)) {
                TrinoException changed = assertThrows(TrinoException.class, () -> files.readLog(0, 0, new byte[4], 0, 4));
                assertEquals(BridgeErrorCode.FILE_CHANGED.toErrorCode(), changed.getErrorCode());
            }
        }
        Files.delete(log);
        try (PlannedSliceFiles files = filesOf(slice, LOCAL)) {
            TrinoException gone = assertThrows(TrinoException.class, () -> files.readLog(0, 0, new byte[4], 0, 4));
            assertEquals(BridgeErrorCode.FILE_CHANGED.toErrorCode(), gone.getErrorCode());
        }
    }

    @Test
    void anErrorNamesTheSliceAndItsReason()
    {
        TrinoException changed = new TrinoException(BridgeErrorCode.FILE_CHANGED, "changed");
        assertEquals(changed, failure(new IllegalStateException("of the merger", changed)));

        TrinoException unsupported = failure(new UnsupportedSlice("column c is odd"));
        assertEquals(BridgeErrorCode.MERGE_ON_READ.toErrorCode(), unsupported.getErrorCode());
        assertTrue(unsupported.getMessage().contains("file:///t/a") && unsupported.getMessage().contains("column c is odd"));

        TrinoException missing = failure(new IllegalStateException(new ClassNotFoundException("org.acme.Payload")));
        assertEquals(BridgeErrorCode.MERGE_ON_READ.toErrorCode(), missing.getErrorCode());
        assertTrue(missing.getMessage().contains("org.acme.Payload"));

        TrinoException partial = failure(new IllegalStateException(new UnsupportedOperationException("partial updates")));
        assertEquals(BridgeErrorCode.MERGE_ON_READ.toErrorCode(), partial.getErrorCode());
        assertTrue(partial.getMessage().contains("partial updates"));

        TrinoException corrupt = failure(new IllegalStateException("bad block"));
        assertEquals(BridgeErrorCode.FILE_CORRUPT.toErrorCode(), corrupt.getErrorCode());
        assertTrue(corrupt.getMessage().contains("bad block"));
    }

    private static TrinoException failure(RuntimeException problem)
    {
        SliceMerger failing = _ -> {
            throw problem;
        };
        MergePageSource source = new MergePageSource(scan(LOCAL, List.of(X), TupleDomain::all), List.of(slice("a", 10)), TestMergePageSource::files, () -> failing);
        return assertThrows(TrinoException.class, source::getNextSourcePage);
    }

    private List<String> read(TupleDomain<BridgeColumnHandle> predicate, PlannedFile... slices)
    {
        SliceMerger merger = request -> {
            merged.add(request);
            return new Rows(List.of(page(1), page(2)).iterator());
        };
        List<String> found = new ArrayList<>();
        FileScan scan = scan(LOCAL, List.of(DAY, X), () -> predicate);
        try (MergePageSource source = new MergePageSource(scan, List.of(slices), TestMergePageSource::files, () -> merger)) {
            while (!source.isFinished()) {
                SourcePage page = source.getNextSourcePage();
                for (int i = 0; page != null && i < page.getPositionCount(); i++) {
                    found.add("%d %s".formatted(BIGINT.getLong(page.getBlock(1), i), VARCHAR.getSlice(page.getBlock(0), i).toStringUtf8()));
                }
            }
        }
        catch (IOException e) {
            throw new AssertionError(e);
        }
        return found;
    }

    private static Page page(long value)
    {
        BlockBuilder builder = BIGINT.createFixedSizeBlockBuilder(1);
        BIGINT.writeLong(builder, value);
        return new Page(builder.build());
    }

    private static FileScan scan(FileOpener opener, List<BridgeColumnHandle> channels, Supplier<TupleDomain<BridgeColumnHandle>> predicate)
    {
        return new FileScan(null, opener, DateTimeZone.UTC, channels, predicate, new AtomicInteger());
    }

    private static PlannedSliceFiles filesOf(PlannedFile slice, FileOpener opener)
    {
        FileScan scan = scan(opener, List.of(), TupleDomain::all);
        SlicesAhead ahead = new SlicesAhead(scan, new ConstantColumns(List.of()), List.of(slice), CombinedFilesLoader.RANGE);
        return new PlannedSliceFiles(slice, ahead.take(0, new ReadCounters()), Optional.empty(), scan, _ -> null, new ReadCounters());
    }

    private static PlannedSliceFiles files(PlannedFile slice, SlicesAhead.Beginning first, ReadCounters counters)
    {
        return new PlannedSliceFiles(slice, first, Optional.empty(), scan(LOCAL, List.of(), TupleDomain::all), _ -> null, counters);
    }

    private static PlannedFile slice(String day, long size)
    {
        PartitionEntry partition = new PartitionEntry("day=" + day, List.of(day), new boolean[] {false});
        ReaderSpec reader = new ReaderSpec("hudi", Map.of("key", "value"), Optional.empty());
        return new PlannedFile(size < 0 ? "" : "file:///t/" + day, 0, Math.max(size, 0), size, 0, partition, reader, List.of(new LogFile("file:///t/.log", 7, 8)));
    }

    private record Rows(Iterator<Page> pages)
            implements MergedPages
    {
        @Override
        public Page next()
        {
            return pages.hasNext() ? pages.next() : null;
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
