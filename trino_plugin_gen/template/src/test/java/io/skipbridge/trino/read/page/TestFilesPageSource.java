package io.skipbridge.trino.read.page;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.OpenFile;
import io.skipbridge.trino.read.file.PlannedBytes;
import io.skipbridge.trino.read.file.RowFormat;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.read.storage.PlannedInputFile;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestFilesPageSource
{
    private static final BridgeColumnHandle X = new BridgeColumnHandle("x", BIGINT, ColumnKind.DATA, 0);
    private static final BridgeColumnHandle GONE = new BridgeColumnHandle("gone", BIGINT, ColumnKind.DATA, 1);
    private static final BridgeColumnHandle DAY = new BridgeColumnHandle("day", VARCHAR, ColumnKind.PARTITION_KEY, 0);
    private static final List<BridgeColumnHandle> ALL = List.of(GONE, DAY, X, BridgeColumnHandle.FILE_SIZE);

    @TempDir
    private Path directory;
    private final AtomicInteger opened = new AtomicInteger();

    @Test
    void addsConstantsAndNullsAndJoinsSmallPages()
            throws IOException
    {
        FilesPageSource source = source(ALL, TupleDomain.all(), file("a", "12"), file("b", ""), file("c", "345"));
        SourcePage page = source.getNextSourcePage();
        assertEquals(List.of("null a 1 2", "null a 2 2", "null c 3 3", "null c 4 3", "null c 5 3"), rows(page));
        assertEquals(5, source.getCompletedPositions().orElseThrow());
        assertEquals(5, source.getCompletedBytes());
        assertEquals(null, source.getNextSourcePage());
        assertTrue(source.isFinished());
        source.close();
    }

    @Test
    void skipsFilesWhoseConstantsContradictThePredicate()
            throws IOException
    {
        TupleDomain<BridgeColumnHandle> predicate = TupleDomain.withColumnDomains(Map.of(DAY, Domain.singleValue(VARCHAR, utf8Slice("b"))));
        FilesPageSource source = source(ALL, predicate, file("a", "12"), file("b", "3"));
        assertEquals(List.of("null b 3 1"), rows(source.getNextSourcePage()));
        assertEquals(1, opened.get());
        source.close();
    }

    @Test
    void countsRowsWithoutColumns()
            throws IOException
    {
        FilesPageSource source = source(List.of(), TupleDomain.all(), file("a", "12"), file("b", "345"));
        assertEquals(5, source.getNextSourcePage().getPositionCount());
        source.close();
    }

    @Test
    void refusesAChangedFileAndNamesADamagedOne()
            throws IOException
    {
        PlannedFile changed = file("a", "12");
        Files.writeString(directory.resolve("a"), "123");
        TrinoException failure = assertThrows(TrinoException.class, () -> source(ALL, TupleDomain.all(), changed).getNextSourcePage());
        assertEquals(BridgeErrorCode.FILE_CHANGED.toErrorCode(), failure.getErrorCode());
        FilesPageSource damaged = source(ALL, TupleDomain.all(), file("b", "12"), file("c", "1x"));
        failure = assertThrows(TrinoException.class, damaged::getNextSourcePage);
        assertEquals(BridgeErrorCode.FILE_CORRUPT.toErrorCode(), failure.getErrorCode());
        assertTrue(failure.getMessage().contains("/c cannot be read as digits"), failure.getMessage());
        damaged.close();
    }

    @Test
    void aStreamOverAPlannedFileSeeks()
            throws IOException
    {
        PlannedFile file = file("a", "0123456789");
        FileOpener opener = FileOpener.create(Set.of(), Map.of(), Optional.empty(), "test", null);
        try (PlannedBytes bytes = new PlannedBytes(10, "345".getBytes(), 3, false, () -> opener.open(null, file))) {
            var stream = new PlannedInputFile(file.path(), bytes).newStream();
            stream.seek(3);
            assertEquals("3456789", new String(stream.readAllBytes()));
            stream.seek(1);
            assertEquals('1', stream.read());
            assertEquals(2, stream.skip(2));
            assertEquals("4567", new String(stream.readNBytes(4)));
            assertEquals(2, stream.skip(5));
            assertEquals(-1, stream.read());
        }
    }

    /** Avro's reader takes an EOFException of a stream for the end of the file. */
    @Test
    void aStreamOfStorageThatFailsDoesNotEnd()
            throws IOException
    {
        ReadableFile cut = new ReadableFile()
        {
            @Override
            public long size()
            {
                return 10;
            }

            @Override
            public void readFully(long position, byte[] buffer, int offset, int length)
                    throws IOException
            {
                throw new EOFException("5 of 10 bytes");
            }

            @Override
            public void close() {}
        };
        var stream = new PlannedInputFile("s3://b/a", cut).newStream();
        TrinoException failure = assertThrows(TrinoException.class, stream::read);
        assertEquals(BridgeErrorCode.FILE_UNREADABLE.toErrorCode(), failure.getErrorCode());
        assertTrue(failure.getMessage().contains("s3://b/a") && failure.getMessage().contains("5 of 10"), failure.getMessage());
    }

    private FilesPageSource source(List<BridgeColumnHandle> channels, TupleDomain<BridgeColumnHandle> predicate, PlannedFile... files)
    {
        FileOpener opener = FileOpener.create(Set.of(), Map.of(), Optional.empty(), "test", null);
        FileScan scan = new FileScan(null, opener, DateTimeZone.UTC, channels, () -> predicate, new AtomicInteger());
        return new FilesPageSource(scan, new Digits(), List.of(files));
    }

    private PlannedFile file(String day, String content)
            throws IOException
    {
        Path path = directory.resolve(day);
        Files.writeString(path, content);
        long modified = Files.getLastModifiedTime(path).toMillis();
        PartitionEntry partition = new PartitionEntry("day=" + day, List.of(day), new boolean[] {false});
        return new PlannedFile("file://" + path, 0, content.length(), content.length(), modified, partition, ReaderSpec.PARQUET, List.of());
    }

    private static List<String> rows(SourcePage page)
    {
        List<String> rows = new ArrayList<>();
        for (int i = 0; i < page.getPositionCount(); i++) {
            rows.add("%s %s %d %d".formatted(
                    page.getBlock(0).isNull(i) ? "null" : "value",
                    VARCHAR.getSlice(page.getBlock(1), i).toStringUtf8(),
                    BIGINT.getLong(page.getBlock(2), i),
                    BIGINT.getLong(page.getBlock(3), i)));
        }
        return rows;
    }

    /** A row for each digit, in a page of its own. The column x has the digit. */
    private final class Digits
            implements RowFormat
    {
        @Override
        public String spelled()
        {
            return "digits";
        }

        @Override
        public AheadRange ahead()
        {
            return AheadRange.begin(2, 1);
        }

        @Override
        public FileReader open(FileScan scan, OpenFile file, TupleDomain<BridgeColumnHandle> predicate)
        {
            opened.incrementAndGet();
            InputStream stream = new PlannedInputFile(file.planned().path(), file.bytes()).newStream();
            List<BridgeColumnHandle> columns = scan.dataColumns();
            return new FileReader()
            {
                @Override
                public int channelOf(int dataColumn)
                {
                    return columns.get(dataColumn).equals(X) ? 0 : -1;
                }

                @Override
                public SourcePage next()
                        throws IOException
                {
                    int digit = stream.read();
                    if (digit < 0) {
                        return null;
                    }
                    if (!Character.isDigit(digit)) {
                        throw new IllegalArgumentException("no digit");
                    }
                    BlockBuilder builder = BIGINT.createFixedSizeBlockBuilder(1);
                    BIGINT.writeLong(builder, digit - '0');
                    return SourcePage.create(builder.build());
                }
            };
        }
    }
}
