package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.read.FakeS3;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.parquet.writer.ParquetSchemaConverter;
import io.trino.parquet.writer.ParquetWriter;
import io.trino.parquet.writer.ParquetWriterOptions;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.type.Type;
import org.apache.parquet.format.CompressionCodec;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.Statistics;
import org.joda.time.DateTimeZone;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import shaded.parquet.org.apache.thrift.TException;
import shaded.parquet.org.apache.thrift.protocol.TCompactProtocol;
import shaded.parquet.org.apache.thrift.transport.TMemoryBuffer;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;

/** Files whose footers state what is wrong, as their writers are known to, read under a predicate. */
class TestWritersNotBelieved
{
    private static final int TIMES = 5_000;

    private final FakeS3 store;
    private final FileOpener opener;

    TestWritersNotBelieved()
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

    @Test
    void noNullsStatedWhereThereAreSome()
            throws Exception
    {
        for (String writer : new String[] {null, "github.com/xitongsys/parquet-go", "DuckDB version v1.1.9"}) {
            byte[] file = file(BIGINT, writer, statistics -> statistics.setNull_count(0), 7L, null, null, 9L);
            assertEquals(2 * TIMES, count(file, BIGINT, Domain.onlyNull(BIGINT), null));
            assertEquals(TIMES, count(file, BIGINT, Domain.all(BIGINT), 9L));
            assertEquals(2 * TIMES, count(file, BIGINT, Domain.all(BIGINT), null));
        }
    }

    @Test
    void nothingButNullsStated()
            throws Exception
    {
        byte[] file = file(BIGINT, "other", statistics -> statistics.setNull_count(4 * TIMES), 7L, null, null, 9L);
        assertEquals(TIMES, count(file, BIGINT, Domain.singleValue(BIGINT, 7L), 7L));
        byte[] summed = file(BIGINT, "Polars", statistics -> statistics.setNull_count(4 * TIMES), 7L, null, null, 9L);
        assertEquals(TIMES, count(summed, BIGINT, Domain.singleValue(BIGINT, 7L), 7L));
    }

    @Test
    void leastBooleanOfPolars()
            throws Exception
    {
        Consumer<Statistics> falseAlone = statistics -> {
            statistics.setMin_value(new byte[] {0});
            statistics.setMax_value(new byte[] {0});
        };
        byte[] file = file(BOOLEAN, "Polars", falseAlone, true, true, null);
        assertEquals(2 * TIMES, count(file, BOOLEAN, Domain.singleValue(BOOLEAN, true), true));
    }

    @Test
    void boundsOfNumbersSkip()
            throws Exception
    {
        byte[] file = file(BIGINT, "a new writer", _ -> {}, 7L, null, 9L);
        assertEquals(0, count(file, BIGINT, Domain.singleValue(BIGINT, 10L), 7L));
        byte[] known = file(BIGINT, "parquet-mr version 1.13.1 (build 1)", _ -> {}, 7L, 9L);
        assertEquals(0, count(known, BIGINT, Domain.onlyNull(BIGINT), 7L));
    }

    /** The rows of a value that a scan under a predicate gives. */
    private long count(byte[] file, Type type, Domain domain, Object value)
            throws Exception
    {
        BridgeColumnHandle column = new BridgeColumnHandle("x", type, ColumnKind.DATA, 0);
        store.objects.put("f", file);
        PartitionEntry partition = new PartitionEntry("", List.of(), new boolean[0]);
        PlannedFile planned = new PlannedFile(FakeS3.uri("f"), 0, file.length, file.length, FakeS3.TIME, partition, ReaderSpec.PARQUET, List.of());
        TupleDomain<BridgeColumnHandle> predicate = TupleDomain.withColumnDomains(Map.of(column, domain));
        FileScan scan = new FileScan(FakeS3.session(), opener, DateTimeZone.UTC, List.of(column), () -> predicate, new AtomicInteger(20));
        long found = 0;
        try (ConnectorPageSource source = new ParquetFormat().open(scan, List.of(planned))) {
            while (!source.isFinished()) {
                source.isBlocked().get(60, SECONDS);
                SourcePage page = source.getNextSourcePage();
                for (int row = 0; page != null && row < page.getPositionCount(); row++) {
                    found += Objects.equals(value(type, page.getBlock(0), row), value) ? 1 : 0;
                }
            }
        }
        return found;
    }

    private static Object value(Type type, Block block, int row)
    {
        if (block.isNull(row)) {
            return null;
        }
        return type == BIGINT ? (Object) BIGINT.getLong(block, row) : (Object) BOOLEAN.getBoolean(block, row);
    }

    /** The values, repeated, in a file of one row group whose footer is changed. */
    private static byte[] file(Type type, String writer, Consumer<Statistics> change, Object... values)
            throws Exception
    {
        BlockBuilder rows = type.createBlockBuilder(null, TIMES * values.length);
        for (int i = 0; i < TIMES * values.length; i++) {
            switch (values[i % values.length]) {
                case Long number -> BIGINT.writeLong(rows, number);
                case Boolean truth -> BOOLEAN.writeBoolean(rows, truth);
                case null, default -> rows.appendNull();
            }
        }
        ParquetSchemaConverter schema = new ParquetSchemaConverter(List.of(type), List.of("x"), false, false);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ParquetWriter parquet = new ParquetWriter(
                out,
                schema.getMessageType(),
                schema.getPrimitiveTypes(),
                ParquetWriterOptions.builder().build(),
                CompressionCodec.UNCOMPRESSED,
                "test",
                Optional.empty(),
                Optional.empty())) {
            parquet.write(new Page(rows.build()));
        }
        return changed(out.toByteArray(), writer, change);
    }

    private static byte[] changed(byte[] file, String writer, Consumer<Statistics> change)
            throws TException
    {
        int length = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).getInt(file.length - 8);
        int start = file.length - 8 - length;
        TMemoryBuffer read = new TMemoryBuffer(length);
        read.write(file, start, length);
        FileMetaData footer = new FileMetaData();
        footer.read(new TCompactProtocol(read));
        footer.setCreated_by(writer);
        footer.getRow_groups().forEach(group -> change.accept(group.getColumns().getFirst().getMeta_data().getStatistics()));
        TMemoryBuffer written = new TMemoryBuffer(length);
        footer.write(new TCompactProtocol(written));
        ByteBuffer made = ByteBuffer.allocate(start + written.length() + 8).order(ByteOrder.LITTLE_ENDIAN);
        made.put(file, 0, start).put(written.getArray(), 0, written.length()).putInt(written.length()).put("PAR1".getBytes());
        return made.array();
    }
}
