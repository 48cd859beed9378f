package io.skipbridge.trino.wire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.Function;
import java.util.stream.StreamSupport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

/**
 * The client against the frames that Python reads and writes too: a socket expects the recorded call byte for byte and sends the recorded
 * reply. The frames are in the repository only; a project generated elsewhere skips these tests.
 */
class TestGoldenFrames
{
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Path FOLDER = Path.of("../../tests/vectors/wire");
    private static final Map<String, JsonNode> SAID = new HashMap<>();

    private interface Asking<T>
    {
        T ask(PlannerClient client)
                throws IOException, BridgeFailure;
    }

    @BeforeAll
    static void read()
            throws IOException
    {
        assumeTrue(Files.exists(FOLDER), "the golden frames are in the repository only");
        for (JsonNode frame : MAPPER.readTree(Files.readAllBytes(FOLDER.resolve("frames.json")))) {
            SAID.put(frame.get("file").asText(), frame);
        }
    }

    @Test
    void names()
            throws Exception
    {
        assertEquals(texts(success("list_schemas")), exchange("list_schemas", PlannerClient::listSchemas));
        assertEquals(texts(success("list_tables")), exchange("list_tables", client -> client.listTables("db")));
    }

    @Test
    void aFailureThatThePlannerDeclares()
    {
        BridgeFailure failure = assertThrows(BridgeFailure.class, () -> exchange("list_views", client -> client.listViews("db")));
        JsonNode said = SAID.get("list_views.reply.bin").at("/body/failure");
        assertEquals(
                List.of(said.get("code").asText(), said.get("category").asText(), said.get("message").asText(), said.get("hint").asText()),
                List.of(failure.code(), failure.category(), failure.getMessage(), failure.remedy()));
        assertEquals(said.get("retryable").asBoolean(), failure.retryable());
    }

    @Test
    void tables()
            throws Exception
    {
        JsonNode asked = SAID.get("get_table.call.bin").get("body");
        assertEquals(table("get_table"), exchange("get_table", client -> client.getTable("q-1", "db", "t", asked.get("read_version").asText())));
        assertEquals(table("get_view"), exchange("get_view", client -> client.getTable("q-1", "db", "v", "")));
        assertEquals(table("get_statistics"), exchange("get_statistics", client -> client.getStatistics(request("get_statistics"))));
    }

    @Test
    void plans()
            throws Exception
    {
        assertEquals(plan("plan"), exchange("plan", client -> client.plan(request("plan"))));
        assertEquals(plan("open_system_table"), exchange("open_system_table", client -> client.openSystemTable(request("open_system_table"), "files")));
        assertFalse(plan("plan").rowFilter().isEmpty() || plan("plan").snapshotId().isEmpty());
        JsonNode asked = SAID.get("apply_dynamic_filter.call.bin").get("body");
        exchange("apply_dynamic_filter", client -> nothing(() -> client.applyDynamicFilter(asked.get("handle").asText(), asked.get("predicate").asText())));
        exchange("close_plan", client -> nothing(() -> client.closePlan(asked.get("handle").asText())));
    }

    @Test
    void refreshes()
            throws Exception
    {
        List<String> partitions = list(SAID.get("refresh_index.call.bin").at("/body/partitions"), JsonNode::asText);
        exchange("refresh_index", client -> nothing(() -> client.refreshIndex("db", "t", partitions)));
    }

    @Test
    void splits()
            throws Exception
    {
        for (String name : List.of("next_splits", "next_splits_last")) {
            JsonNode asked = SAID.get(name + ".call.bin").get("body");
            SplitBatch batch = exchange(name, client -> client.nextSplits(
                    asked.get("handle").asText(), asked.get("token").asLong(), asked.get("max_splits").asInt(), asked.get("max_wait_ms").asInt()));
            JsonNode said = success(name);
            assertEquals(said.get("next_token").asLong(), batch.nextToken());
            assertEquals(said.get("finished").asBoolean(), batch.finished());
            assertEquals(List.of(said.get("split_count").asInt(), said.get("file_count").asInt(), said.get("log_count").asInt()), List.of(batch.splitCount(), batch.fileCount(), batch.logCount()));
            assertEquals(Optional.ofNullable(said.get("report")).map(JsonNode::asText), batch.report());
            assertEquals(ByteBuffer.wrap(said.get("payload").binaryValue()), batch.payload());
            assertEquals(list(said.get("readers"), TestGoldenFrames::reader), batch.readers());
            assertEquals(said.get("partitions").size(), batch.partitions().size());
            for (int i = 0; i < batch.partitions().size(); i++) {
                PartitionEntry partition = batch.partitions().get(i);
                assertEquals(said.get("partitions").get(i).get("name").asText(), partition.name());
                assertEquals(texts(said.get("partitions").get(i).get("values")), partition.values());
                assertEquals(said.get("partitions").get(i).get("nulls").get(0).asBoolean(), partition.nulls()[0]);
            }
        }
    }

    @Test
    void aggregates()
            throws Exception
    {
        JsonNode asked = SAID.get("aggregate.call.bin").at("/body/aggregates");
        AggregateRequest wanted = new AggregateRequest(
                list(asked.get("aggregates"), each -> new AggregateRequest.Aggregate(each.get("function").asText(), each.get("column").asText())),
                texts(asked.get("group_by")),
                asked.get("max_wait_ms").asInt());
        JsonNode said = success("aggregate");
        AggregateResult expected = new AggregateResult(
                said.get("endpoint").asText(), said.get("enforced").asBoolean(), said.get("answered").asBoolean(), said.get("reason").asText(), said.get("rows").asText(), said.get("files").asLong());
        assertEquals(expected, exchange("aggregate", client -> client.aggregate(request("aggregate"), wanted)));
    }

    @Test
    void systemTables()
            throws Exception
    {
        JsonNode asked = SAID.get("next_rows.call.bin").get("body");
        JsonNode said = success("next_rows");
        SystemPage expected = new SystemPage(said.get("next_token").asLong(), said.get("finished").asBoolean(), said.get("row_count").asInt(), texts(said.get("columns")));
        assertEquals(expected, exchange("next_rows", client -> client.nextRows(asked.get("handle").asText(), asked.get("token").asLong(), asked.get("max_rows").asInt())));
    }

    /** Names carry no protocol, so the planner is asked for its own before anything else. */
    @Test
    void aPlannerOfProtocol1IsRefusedBeforeAnythingIsAsked()
    {
        ProtocolException refused = assertThrows(
                ProtocolException.class,
                () -> replay(List.of("health.call.bin"), List.of("protocol1_health.reply.bin"), PlannerClient::listSchemas));
        assertEquals("the planner, release 0.1.0, speaks protocol 1, and the connector speaks 2", refused.getMessage());
        assertTrue(refused.remedy().startsWith("Upgrade the planner"), refused.remedy());
        ProtocolException newer = assertThrows(ProtocolException.class, () -> new Health("9.0", 3, List.of()).check());
        assertTrue(newer.remedy().startsWith("Build the connector of the planner's release"), newer.remedy());
    }

    private static <T> T exchange(String name, Asking<T> asking)
            throws Exception
    {
        return replay(List.of("health.call.bin", name + ".call.bin"), List.of("health.reply.bin", name + ".reply.bin"), asking);
    }

    private static <T> T replay(List<String> calls, List<String> replies, Asking<T> asking)
            throws Exception
    {
        List<String> received = new ArrayList<>();
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread thread = Thread.ofVirtual().start(() -> answer(server, calls.size(), replies, received));
            PlannerAddress address = new PlannerAddress("127.0.0.1", server.getLocalPort());
            try (PlannerClient client = new PlannerClient(address, Duration.ofSeconds(30))) {
                return asking.ask(client);
            }
            finally {
                thread.join();
                List<String> expected = new ArrayList<>();
                for (String call : calls) {
                    expected.add(HexFormat.of().formatHex(Files.readAllBytes(FOLDER.resolve(call))));
                }
                assertEquals(expected, received);
            }
        }
    }

    private static void answer(ServerSocket server, int calls, List<String> replies, List<String> received)
    {
        try (Socket socket = server.accept()) {
            DataInputStream input = new DataInputStream(socket.getInputStream());
            for (int i = 0; i < calls; i++) {
                byte[] length = input.readNBytes(4);
                byte[] frame = input.readNBytes(ByteBuffer.wrap(length).getInt());
                received.add(HexFormat.of().formatHex(length) + HexFormat.of().formatHex(frame));
                socket.getOutputStream().write(Files.readAllBytes(FOLDER.resolve(replies.get(i))));
            }
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private interface Doing
    {
        void run()
                throws IOException, BridgeFailure;
    }

    private static Object nothing(Doing doing)
            throws IOException, BridgeFailure
    {
        doing.run();
        return "";
    }

    private static JsonNode success(String name)
    {
        return SAID.get(name + ".reply.bin").at("/body/success");
    }

    private static PlanRequest request(String name)
    {
        JsonNode said = SAID.get(name + ".call.bin").at("/body/request");
        return new PlanRequest(
                said.get("schema_name").asText(),
                said.get("table_name").asText(),
                said.get("query_id").asText(),
                said.get("engine_version").asText(),
                said.get("predicate").asText(),
                texts(said.get("projected_columns")),
                said.has("limit") ? OptionalLong.of(said.get("limit").asLong()) : OptionalLong.empty(),
                map(said.get("options")),
                list(said.get("order"), key -> new SortKey(key.get("column").asText(), key.get("descending").asBoolean(), key.get("nulls_first").asBoolean())),
                said.get("enforced").asBoolean(),
                said.get("read_version").asText(),
                said.get("snapshot_id").asText(),
                texts(said.get("dynamic_filter_columns")),
                said.get("first_splits").asInt());
    }

    private static Plan plan(String name)
    {
        JsonNode said = success(name);
        return new Plan(
                said.get("handle").asText(),
                said.get("endpoint").asText(),
                said.get("generation").asLong(),
                said.get("freshness").asText(),
                texts(said.get("dropped")),
                said.get("snapshot_id").asText(),
                said.get("row_filter").asText(),
                said.get("dynamic_filter_wait_ms").asInt(),
                texts(said.get("dynamic_filter_columns")),
                Optional.ofNullable(said.get("first")).map(TestGoldenFrames::emptyBatch));
    }

    private static SplitBatch emptyBatch(JsonNode said)
    {
        try {
            return new SplitBatch(said.get("next_token").asLong(), said.get("finished").asBoolean(), 0, 0, List.of(), ByteBuffer.wrap(said.get("payload").binaryValue()), Optional.empty(), List.of(), 0, ByteBuffer.allocate(0));
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static TableDescription table(String name)
    {
        JsonNode said = success(name);
        return new TableDescription(
                said.get("schema_name").asText(),
                said.get("table_name").asText(),
                list(said.get("columns"), TestGoldenFrames::column),
                number(said, "row_count"),
                said.get("location").asText(),
                said.get("format").asText(),
                text(said, "comment"),
                text(said, "view"),
                text(said, "owner"),
                said.get("snapshot_id").asText(),
                said.get("read_version").asText(),
                said.path("table_format").asText());
    }

    private static ColumnDescription column(JsonNode said)
    {
        return new ColumnDescription(
                said.get("name").asText(),
                said.get("hive_type").asText(),
                said.get("engine_type").asText(),
                said.get("partition_key").asBoolean(),
                text(said, "comment"),
                number(said, "nulls_fraction"),
                number(said, "distinct_count"),
                number(said, "low"),
                number(said, "high"),
                number(said, "data_bytes"),
                said.path("overlapping").asBoolean());
    }

    private static ReaderSpec reader(JsonNode said)
    {
        Optional<List<ReaderSpec.Column>> columns = Optional.ofNullable(said.get("columns"))
                .map(each -> list(each, column -> new ReaderSpec.Column(column.get("name").asText(), column.get("engine_type").asText())));
        return new ReaderSpec(said.get("format").asText(), map(said.get("properties")), columns);
    }

    private static Optional<String> text(JsonNode said, String name)
    {
        return Optional.ofNullable(said.get(name)).map(JsonNode::asText);
    }

    private static OptionalDouble number(JsonNode said, String name)
    {
        return said.has(name) ? OptionalDouble.of(said.get(name).asDouble()) : OptionalDouble.empty();
    }

    private static List<String> texts(JsonNode said)
    {
        return list(said, JsonNode::asText);
    }

    private static Map<String, String> map(JsonNode said)
    {
        Map<String, String> found = new LinkedHashMap<>();
        said.fields().forEachRemaining(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }

    private static <T> List<T> list(JsonNode said, Function<JsonNode, T> each)
    {
        return StreamSupport.stream(said.spliterator(), false).map(each).toList();
    }
}
