package io.skipbridge.trino.read.avro;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.page.FilesPageSource;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.TupleDomain;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.joda.time.DateTimeZone;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.apache.avro.file.DataFileConstants.SYNC_SIZE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestAvroFormat
{
    private static final String LONG = "{\"name\": \"x\", \"type\": \"long\"}";
    private static final String INT = "{\"name\": \"x\", \"type\": \"int\"}";
    private static final String TEXT = "{\"name\": \"s\", \"type\": [\"null\", \"string\"], \"default\": null}";
    private static final BridgeColumnHandle X = new BridgeColumnHandle("x", BIGINT, ColumnKind.DATA, 0);
    private static final BridgeColumnHandle S = new BridgeColumnHandle("s", VARCHAR, ColumnKind.DATA, 1);
    private static final BridgeColumnHandle TIME = new BridgeColumnHandle("t", TIMESTAMP_MICROS, ColumnKind.DATA, 0);

    @TempDir
    private Path directory;
    private int files;

    @Test
    void filesOfOneSchemaAndOfOthersAreReadOneAfterAnother()
            throws IOException
    {
        List<PlannedFile> planned = List.of(
                file(Map.of(), LONG + ", " + TEXT, row(1L, "a"), row(2L, null)),
                file(Map.of(), LONG + ", " + TEXT, row(3L, "c")),
                file(Map.of(), LONG + ", " + TEXT),
                file(Map.of(), INT, row(4)),
                file(Map.of(), TEXT + ", " + LONG, row("e", 5L)),
                file(Map.of(), LONG + ", " + TEXT, row(6L, "f")));
        assertEquals(List.of("1 a", "2 null", "3 c", "4 null", "5 e", "6 f"), rows(List.of(X, S), planned));
        assertEquals(List.of("1", "2", "3", "4", "5", "6"), rows(List.of(X), planned));
    }

    @Test
    void timestampsAreOfTheZoneOfTheirFile()
            throws IOException
    {
        String time = "{\"name\": \"t\", \"type\": {\"type\": \"long\", \"logicalType\": \"timestamp-millis\"}}";
        List<PlannedFile> planned = List.of(
                file(Map.of("writer.time.zone", "UTC"), time, row(0L)),
                file(Map.of("writer.time.zone", "Asia/Kathmandu"), time, row(0L)),
                file(Map.of("writer.time.zone", "UTC"), time, row(0L)));
        List<String> alone = new ArrayList<>();
        for (PlannedFile each : planned) {
            alone.addAll(rows(List.of(TIME), List.of(each)));
        }
        assertEquals(alone, rows(List.of(TIME), planned));
        assertEquals(2, Set.copyOf(alone).size());
    }

    @Test
    void aSchemaThatCannotBeResolvedNamesItsFile()
            throws IOException
    {
        PlannedFile good = file(Map.of(), LONG + ", " + TEXT, row(1L, "a"));
        PlannedFile bad = file(Map.of(), TEXT, row("b"));
        TrinoException failure = assertThrows(TrinoException.class, () -> rows(List.of(X, S), List.of(good, bad)));
        assertEquals(BridgeErrorCode.TYPE_MISMATCH.toErrorCode(), failure.getErrorCode());
        assertTrue(failure.getMessage().contains(bad.path()), failure.getMessage());
    }

    @Test
    void aBlockWithoutRowsIsNoEnd()
            throws IOException
    {
        byte[] header = Files.readAllBytes(Path.of(file(Map.of(), LONG + ", " + TEXT).path().substring("file://".length())));
        byte[] marker = Arrays.copyOfRange(header, header.length - SYNC_SIZE, header.length);
        byte[] empty = joined(new byte[] {0, 0}, marker);
        byte[] first = joined(new byte[] {4, 8, 2, 0, 4, 0}, marker);
        byte[] second = joined(new byte[] {2, 8, 6, 2, 2, 'c'}, marker);
        List<String> all = List.of("1 null", "2 null", "3 c");
        for (List<byte[]> blocks : List.of(
                List.of(first, second),
                List.of(empty, first, second),
                List.of(first, empty, second),
                List.of(empty, empty, first, empty, empty, second, empty))) {
            byte[] bytes = joined(header, blocks.stream().reduce(new byte[0], TestAvroFormat::joined));
            assertEquals(all, rows(List.of(X, S), List.of(file(bytes, 0, bytes.length))));
            for (int cut = 1; cut < bytes.length; cut++) {
                assertEquals(all, rows(List.of(X, S), List.of(file(bytes, 0, cut), file(bytes, cut, bytes.length - cut))), "cut at %d".formatted(cut));
            }
        }
        byte[] only = joined(header, empty);
        assertEquals(List.of(), rows(List.of(X, S), List.of(file(only, 0, only.length))));
    }

    @Test
    void aFileThatIsCutShortIsAnError()
            throws IOException
    {
        for (String codec : List.of("null", "deflate")) {
            PlannedFile whole = file(Map.of("avro.codec", codec), LONG + ", " + TEXT, row(1L, "a"), row(2L, null), row(3L, "c"));
            byte[] bytes = Files.readAllBytes(Path.of(whole.path().substring("file://".length())));
            int header = Files.readAllBytes(Path.of(file(Map.of("avro.codec", codec), LONG + ", " + TEXT).path().substring("file://".length()))).length;
            assertEquals(3, rows(List.of(X, S), List.of(file(bytes, 0, bytes.length))).size());
            assertEquals(0, rows(List.of(X, S), List.of(file(Arrays.copyOf(bytes, header), 0, header))).size());
            for (int length = 1; length < bytes.length; length++) {
                if (length != header) {
                    PlannedFile cut = file(Arrays.copyOf(bytes, length), 0, length);
                    TrinoException failure = assertThrows(TrinoException.class, () -> rows(List.of(X, S), List.of(cut)), "%d bytes of %d".formatted(length, bytes.length));
                    assertEquals(BridgeErrorCode.FILE_CORRUPT.toErrorCode(), failure.getErrorCode());
                    assertTrue(failure.getMessage().contains(cut.path()), failure.getMessage());
                }
            }
        }
    }

    @Test
    void aBlockWithOtherRowsThanItStatesIsAnError()
            throws IOException
    {
        byte[] bytes = Files.readAllBytes(Path.of(file(Map.of(), LONG + ", " + TEXT, row(1L, null), row(2L, null)).path().substring("file://".length())));
        int block = bytes.length - SYNC_SIZE - 6;
        assertEquals(4, bytes[block]);
        for (byte stated : new byte[] {0, 1, 2, 6}) {
            byte[] wrong = bytes.clone();
            wrong[block] = stated;
            PlannedFile file = file(wrong, 0, wrong.length);
            TrinoException failure = assertThrows(TrinoException.class, () -> rows(List.of(X, S), List.of(file)), "%d".formatted(stated));
            assertEquals(BridgeErrorCode.FILE_CORRUPT.toErrorCode(), failure.getErrorCode());
        }
    }

    private PlannedFile file(byte[] bytes, long start, long length)
            throws IOException
    {
        Path path = Files.write(directory.resolve("%d.avro".formatted(files++)), bytes);
        ReaderSpec reader = new ReaderSpec("avro", Map.of("avro.schema.literal", record(LONG + ", " + TEXT)), Optional.empty());
        return new PlannedFile("file://" + path, start, length, bytes.length, Files.getLastModifiedTime(path).toMillis(), PartitionEntry.NONE, reader, List.of());
    }

    private static byte[] joined(byte[] left, byte[] right)
    {
        byte[] both = Arrays.copyOf(left, left.length + right.length);
        System.arraycopy(right, 0, both, left.length, right.length);
        return both;
    }

    private static List<Object> row(Object... values)
    {
        return Arrays.asList(values);
    }

    @SafeVarargs
    private PlannedFile file(Map<String, String> metadata, String fields, List<Object>... rows)
            throws IOException
    {
        Schema schema = new Schema.Parser().parse(record(fields));
        Path path = directory.resolve("%d.avro".formatted(files++));
        try (DataFileWriter<GenericData.Record> writer = new DataFileWriter<>(new GenericDatumWriter<>(schema))) {
            metadata.forEach((key, value) -> {
                if (key.equals("avro.codec")) {
                    writer.setCodec(CodecFactory.fromString(value));
                }
                else {
                    writer.setMeta(key, value);
                }
            });
            writer.create(schema, path.toFile());
            for (List<Object> row : rows) {
                GenericData.Record made = new GenericData.Record(schema);
                for (int i = 0; i < row.size(); i++) {
                    made.put(i, row.get(i));
                }
                writer.append(made);
            }
        }
        String declared = fields.contains("\"t\"") ? fields : LONG + ", " + TEXT;
        ReaderSpec reader = new ReaderSpec("avro", Map.of("avro.schema.literal", record(declared)), Optional.empty());
        long size = Files.size(path);
        return new PlannedFile("file://" + path, 0, size, size, Files.getLastModifiedTime(path).toMillis(), PartitionEntry.NONE, reader, List.of());
    }

    private static String record(String fields)
    {
        return "{\"type\": \"record\", \"name\": \"row\", \"fields\": [%s]}".formatted(fields);
    }

    private static List<String> rows(List<BridgeColumnHandle> columns, List<PlannedFile> planned)
            throws IOException
    {
        FileOpener opener = FileOpener.create(Set.of(), Map.of(), Optional.empty(), "test", null);
        FileScan scan = new FileScan(null, opener, DateTimeZone.UTC, columns, TupleDomain::all, new AtomicInteger());
        List<String> found = new ArrayList<>();
        try (FilesPageSource source = new FilesPageSource(scan, new AvroFormat(new ConcurrentHashMap<>()), planned)) {
            while (!source.isFinished()) {
                SourcePage page = source.getNextSourcePage();
                for (int i = 0; page != null && i < page.getPositionCount(); i++) {
                    List<String> values = new ArrayList<>();
                    for (int channel = 0; channel < columns.size(); channel++) {
                        if (page.getBlock(channel).isNull(i)) {
                            values.add("null");
                        }
                        else if (columns.get(channel) == S) {
                            values.add(VARCHAR.getSlice(page.getBlock(channel), i).toStringUtf8());
                        }
                        else {
                            values.add(String.valueOf(columns.get(channel) == X ? BIGINT.getLong(page.getBlock(channel), i) : TIMESTAMP_MICROS.getLong(page.getBlock(channel), i)));
                        }
                    }
                    found.add(String.join(" ", values));
                }
            }
        }
        return found;
    }
}
