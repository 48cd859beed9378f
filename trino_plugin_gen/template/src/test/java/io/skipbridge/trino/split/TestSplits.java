package io.skipbridge.trino.split;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.datatype.jdk8.Jdk8Module;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.skipbridge.trino.wire.SplitBatch;
import io.trino.spi.HostAddress;
import io.trino.spi.TrinoException;
import io.trino.spi.predicate.TupleDomain;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

class TestSplits
{
    private static final PartitionEntry JANUARY = new PartitionEntry("month=1/c=a%3Ab", List.of("1", "a:b"), new boolean[] {false, false});
    private static final PartitionEntry NULL = new PartitionEntry("month=2/c=__HIVE_DEFAULT_PARTITION__", List.of("2", ""), new boolean[] {false, true});
    private static final ReaderSpec CSV = new ReaderSpec("csv", Map.of("field.delim", ";"), Optional.of(List.of(new ReaderSpec.Column("x", "bigint"))));
    private static final PlannedFile A = new PlannedFile("file:///t/month=1/é.parquet", 0, 10, 100, 1_700_000_000_123L, JANUARY, ReaderSpec.PARQUET, List.of(new LogFile("file:///t/.é.log.1", 7, 8), new LogFile("file:///t/.é.log.2", 9, -1)));
    private static final PlannedFile B = new PlannedFile("file:///t/month=1/é2.parquet", 10, 90, 100, -1, JANUARY, CSV, List.of());
    private static final PlannedFile C = new PlannedFile("s3://b/x", 4, Long.MAX_VALUE - 4, Long.MAX_VALUE, 0, NULL, ReaderSpec.PARQUET, List.of(new LogFile("s3://b/log", 1, 2)), -2_113_250_021);

    @Test
    void decodesABatch()
    {
        SplitColumns columns = new SplitColumns(new BatchBuilder().split(A, B).split(C).build(), TupleDomain.all());
        assertEquals(2, columns.splits());
        assertEquals(List.of(A.path(), B.path(), C.path()), List.of(columns.pathText(0), columns.pathText(1), columns.pathText(2)));
        assertEquals(501, columns.weightThousandths(1));
    }

    @Test
    void sendsASplitAndBack()
            throws IOException
    {
        SplitColumns columns = new SplitColumns(new BatchBuilder().split(A, B, C).split(B).build(), TupleDomain.none());
        // as the engine's own: annotated properties only
        ObjectMapper mapper = JsonMapper.builder().addModule(new Jdk8Module()).disable(MapperFeature.AUTO_DETECT_GETTERS, MapperFeature.AUTO_DETECT_IS_GETTERS).build();
        for (int ordinal = 0; ordinal < 2; ordinal++) {
            BridgeSplit split = new BridgeSplit(columns, ordinal, SplitPlacement.ANYWHERE);
            BridgeSplit received = mapper.readValue(mapper.writeValueAsString(split), BridgeSplit.class);
            assertEquals(split.getSplitWeight(), received.getSplitWeight());
            assertEquals(TupleDomain.none(), received.rowFilter());
            List<PlannedFile> expected = ordinal == 0 ? List.of(A, B, C) : List.of(B);
            assertEquals(expected.size(), received.files().size());
            for (int i = 0; i < expected.size(); i++) {
                same(expected.get(i), received.files().get(i));
                same(expected.get(i), split.files().get(i));
            }
            assertTrue(split.getRetainedSizeInBytes() > 0 && received.getRetainedSizeInBytes() > 0);
        }
    }

    /** {@code getAddresses} is asked by releases before 481, and is all that this family has. */
    @Test
    void asksForTheWorkersOfItsFirstFile()
    {
        SplitColumns columns = new SplitColumns(new BatchBuilder().split(A, B).split(C).build(), TupleDomain.all());
        List<String> asked = new ArrayList<>();
        for (int ordinal = 0; ordinal < 2; ordinal++) {
            new BridgeSplit(columns, ordinal, key -> {
                asked.add(key);
                return List.of();
            });
        }
        assertEquals(List.of(A.path() + ":0", C.path() + ":" + (C.start() >> 28)), asked);
    }

    /** Slices of logs alone have no path; they must not all go to one worker. */
    @Test
    void slicesOfLogsAloneAreSpread()
    {
        PlannedFile one = logsAlone("s3://b/.one.log.1");
        PlannedFile two = logsAlone("s3://b/.two.log.1");
        SplitColumns columns = new SplitColumns(new BatchBuilder().split(one).split(two).build(), TupleDomain.all());
        List<String> asked = new ArrayList<>();
        for (int ordinal = 0; ordinal < 2; ordinal++) {
            new BridgeSplit(columns, ordinal, key -> {
                asked.add(key);
                return List.of();
            });
        }
        assertEquals(List.of("s3://b/.one.log.1:0", "s3://b/.two.log.1:0"), asked);
    }

    private static PlannedFile logsAlone(String log)
    {
        return new PlannedFile("", 0, 0, -1, -1, JANUARY, ReaderSpec.PARQUET, List.of(new LogFile(log, 7, 8), new LogFile(log + "2", 7, 8)));
    }

    @Test
    void whatCannotPlaceSplitsIsAskedOnce()
    {
        AtomicInteger asked = new AtomicInteger();
        SplitPlacement placement = SplitPlacement.untilFailure(_ -> {
            if (asked.incrementAndGet() > 1) {
                throw new IllegalStateException("no cache here");
            }
            return List.of(HostAddress.fromString("a"));
        });
        assertEquals(List.of(HostAddress.fromString("a")), placement.hosts("x"));
        assertEquals(List.of(), placement.hosts("x"));
        assertEquals(List.of(), placement.hosts("x"));
        assertEquals(2, asked.get());
    }

    /** The batch of tests/vectors/wire, which Python reads too. */
    @Test
    void readsTheGoldenBatch()
            throws IOException
    {
        Path frames = Path.of("../../tests/vectors/wire/frames.json");
        assumeTrue(Files.exists(frames), "the golden frames are in the repository only");
        JsonNode frame = null;
        for (JsonNode each : new ObjectMapper().readTree(Files.readAllBytes(frames))) {
            frame = each.get("file").asText().equals("next_splits.reply.bin") ? each : frame;
        }
        JsonNode batch = frame.at("/body/success");
        JsonNode said = frame.get("splits");
        List<ReaderSpec> readers = List.of(ReaderSpec.PARQUET, CSV);
        SplitColumns columns = new SplitColumns(
                new SplitBatch(
                        1,
                        false,
                        batch.get("split_count").asInt(),
                        batch.get("file_count").asInt(),
                        List.of(JANUARY, NULL),
                        ByteBuffer.wrap(batch.get("payload").binaryValue()),
                        Optional.empty(),
                        readers,
                        batch.get("log_count").asInt(),
                        ByteBuffer.wrap(batch.get("etag_hashes").binaryValue())),
                TupleDomain.all());
        assertEquals(said.get("weight").size(), columns.splits());
        for (int split = 0; split < columns.splits(); split++) {
            assertEquals(said.get("weight").get(split).asInt(), columns.weightThousandths(split));
            List<PlannedFile> found = new BridgeSplit(columns, split, SplitPlacement.ANYWHERE).files();
            int first = said.get("first").get(split).asInt();
            assertEquals(said.get("first").get(split + 1).asInt() - first, found.size());
            for (int i = 0; i < found.size(); i++) {
                JsonNode file = said.get("files").get(first + i);
                List<LogFile> logs = new ArrayList<>();
                file.get("logs").forEach(log -> logs.add(new LogFile(log.get("path").asText(), log.get("size").asLong(), log.get("modified").asLong())));
                PlannedFile expected = new PlannedFile(
                        file.get("path").asText(),
                        file.get("start").asLong(),
                        file.get("length").asLong(),
                        file.get("size").asLong(),
                        file.get("modified").asLong(),
                        file.get("partition").asInt() == 0 ? JANUARY : NULL,
                        readers.get(file.get("reader").asInt()),
                        logs,
                        file.get("etag_hash").asInt());
                same(expected, found.get(i));
            }
        }
    }

    @Test
    void refusesByNameWhatItCannotRead()
    {
        for (PlannedFile file : List.of(A, C)) {
            TrinoException refused = assertThrows(TrinoException.class, () -> SupportedSlices.check(new SplitColumns(new BatchBuilder().split(file).build(), TupleDomain.all())));
            assertEquals("SKIPBRIDGE_MERGE_ON_READ", refused.getErrorCode().getName());
            assertTrue(refused.getMessage().contains(file.path()) && refused.getMessage().contains(file.logs().getFirst().path()), refused.getMessage());
        }
        PlannedFile unknown = new PlannedFile(B.path(), 0, 1, 1, 0, NULL, new ReaderSpec("vortex", Map.of(), Optional.empty()), List.of());
        TrinoException refused = assertThrows(TrinoException.class, () -> SupportedSlices.check(new SplitColumns(new BatchBuilder().split(unknown).build(), TupleDomain.all())));
        assertEquals("SKIPBRIDGE_UNSUPPORTED_FORMAT", refused.getErrorCode().getName());
        assertTrue(refused.getMessage().contains(B.path()) && refused.getMessage().contains("vortex"), refused.getMessage());
        PlannedFile plain = new PlannedFile(C.path(), 0, 1, 1, 0, NULL, ReaderSpec.PARQUET, List.of());
        SupportedSlices.check(new SplitColumns(new BatchBuilder().split(plain).build(), TupleDomain.all()));
    }

    @Test
    void acceptsLogsOfHudiAlone()
    {
        ReaderSpec hudi = new ReaderSpec("hudi", Map.of(), Optional.empty());
        List<LogFile> logs = List.of(new LogFile("file:///t/.log", 1, 2));
        PlannedFile withBase = new PlannedFile("file:///t/base", 0, 10, 10, 0, NULL, hudi, logs);
        PlannedFile logsAlone = new PlannedFile("", 0, 0, -1, -1, NULL, hudi, logs);
        SupportedSlices.check(new SplitColumns(new BatchBuilder().split(withBase, logsAlone).build(), TupleDomain.all()));
        PlannedFile withoutLogs = new PlannedFile("file:///t/base", 0, 10, 10, 0, NULL, hudi, List.of());
        TrinoException refused = assertThrows(TrinoException.class, () -> SupportedSlices.check(new SplitColumns(new BatchBuilder().split(withoutLogs).build(), TupleDomain.all())));
        assertEquals("SKIPBRIDGE_MERGE_ON_READ", refused.getErrorCode().getName());
    }

    @Test
    void refusesABrokenBatch()
    {
        SplitBatch whole = new BatchBuilder().split(A, B).split(C).build();
        for (int length = 0; length < whole.payload().limit(); length++) {
            ByteBuffer cut = whole.payload().duplicate().limit(length);
            SplitBatch broken = new SplitBatch(1, false, 2, 3, whole.partitions(), cut, Optional.empty(), whole.readers(), whole.logCount(), whole.etagHashes());
            assertThrows(ProtocolException.class, () -> new SplitColumns(broken, TupleDomain.all()));
        }
        SplitBatch more = new SplitBatch(1, false, 2, 4, whole.partitions(), whole.payload(), Optional.empty(), whole.readers(), whole.logCount(), whole.etagHashes());
        assertThrows(ProtocolException.class, () -> new SplitColumns(more, TupleDomain.all()));
        for (int logs : new int[] {-1, 0, 2, 4, Integer.MAX_VALUE}) {
            SplitBatch other = new SplitBatch(1, false, 2, 3, whole.partitions(), whole.payload(), Optional.empty(), whole.readers(), logs, whole.etagHashes());
            assertThrows(ProtocolException.class, () -> new SplitColumns(other, TupleDomain.all()));
        }
        for (int length : new int[] {1, 8, 11, 13, 16}) {
            SplitBatch otherEtags = new SplitBatch(1, false, 2, 3, whole.partitions(), whole.payload(), Optional.empty(), whole.readers(), whole.logCount(), ByteBuffer.allocate(length));
            assertThrows(ProtocolException.class, () -> new SplitColumns(otherEtags, TupleDomain.all()));
        }
        SplitBatch fewerReaders = new SplitBatch(1, false, 2, 3, whole.partitions(), whole.payload(), Optional.empty(), whole.readers().subList(0, 1), whole.logCount(), whole.etagHashes());
        assertThrows(ProtocolException.class, () -> new SplitColumns(fewerReaders, TupleDomain.all()));
    }

    @Test
    void readsOrRefusesWhateverBytesAPayloadHas()
    {
        SplitBatch whole = new BatchBuilder().split(A, B).split(C).build();
        Random random = new Random(3);
        for (int i = 0; i < 20_000; i++) {
            ByteBuffer payload = ByteBuffer.allocate(whole.payload().limit()).put(whole.payload().duplicate()).flip();
            for (int n = random.nextInt(3); n >= 0; n--) {
                payload.put(random.nextInt(payload.limit()), (byte) random.nextInt());
            }
            SplitBatch broken = new SplitBatch(1, false, 2, 3, whole.partitions(), payload, Optional.empty(), whole.readers(), whole.logCount(), whole.etagHashes());
            SplitColumns columns;
            try {
                columns = new SplitColumns(broken, TupleDomain.all());
            }
            catch (ProtocolException e) {
                continue;
            }
            for (int split = 0; split < 2; split++) {
                new BridgeSplit(columns, split, SplitPlacement.ANYWHERE).files();
            }
        }
    }

    @Test
    void takesRowGroupsByTheirFirstByteExactlyOnce()
    {
        PlannedFile first = new PlannedFile("f", 0, 50, 100, -1, JANUARY, ReaderSpec.PARQUET, List.of());
        PlannedFile second = new PlannedFile("f", 50, 50, 100, -1, JANUARY, ReaderSpec.PARQUET, List.of());
        for (long offset = 0; offset < 100; offset++) {
            assertTrue(first.contains(offset) ^ second.contains(offset));
        }
        assertTrue(C.contains(Long.MAX_VALUE - 1));
    }

    private static void same(PlannedFile expected, PlannedFile found)
    {
        assertEquals(expected.path(), found.path());
        assertEquals(
                List.of(expected.start(), expected.length(), expected.size(), expected.modifiedMillis()),
                List.of(found.start(), found.length(), found.size(), found.modifiedMillis()));
        assertEquals(expected.reader(), found.reader());
        assertEquals(expected.logs(), found.logs());
        assertEquals(expected.etagHash(), found.etagHash());
        assertEquals(expected.partition().name(), found.partition().name());
        assertEquals(expected.partition().values(), found.partition().values());
        assertArrayEquals(expected.partition().nulls(), found.partition().nulls());
    }
}
