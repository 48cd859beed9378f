package io.skipbridge.trino.read.avro;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.read.page.FileScan;
import io.skipbridge.trino.read.page.FilesPageSource;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.TupleDomain;
import org.apache.avro.Schema;
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
            metadata.forEach(writer::setMeta);
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
