package io.skipbridge.hive.wire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.skipbridge.client.ProtocolException;
import org.junit.jupiter.api.Test;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** The hooks against the frames that Python and the Trino connector read and write too: a socket takes the call and sends a recorded reply. */
class TestGoldenFrames
{
    private static final Path FOLDER = Paths.get("../../tests/vectors/wire");
    private static final String CALL = "list_skippable_files.call.bin";

    @Test
    void aCallAndItsReply()
            throws Exception
    {
        JsonNode said = frame("list_skippable_files.reply.bin");
        SkippableFiles found = exchange("list_skippable_files.reply.bin");
        assertEquals(said.at("/body/success/generation").asLong(), found.generation());
        assertEquals(said.get("files").size(), found.size());
        for (JsonNode file : said.get("files")) {
            long size = file.get("size").asLong();
            long modified = file.get("modified").asLong();
            assertTrue(found.skips(file.get("path").asText(), size, modified));
            assertFalse(found.skips(file.get("path").asText(), size + 1, modified));
            assertFalse(found.skips(file.get("path").asText(), size, modified + 1));
        }
        assertEquals(Collections.singletonList(said.at("/body/success/notes/0").asText()), found.notes());
        assertEquals("{minmax=3, bloom(v)=1}", found.byIndex().toString());
        assertEquals(2, found.unnamed());
        assertFalse(found.skips("file:///elsewhere", 10, 0));
    }

    @Test
    void indexedTables()
            throws Exception
    {
        JsonNode call = frame("list_indexed_tables.call.bin").at("/body/tables");
        List<String> asked = Arrays.asList(call.get(0).asText(), call.get(1).asText());
        IndexedTables found = exchange("list_indexed_tables.call.bin", "list_indexed_tables.reply.bin", planner -> planner.listIndexedTables(asked));
        JsonNode said = frame("list_indexed_tables.reply.bin").at("/body/success");
        assertEquals(said.at("/locations/db.t").asText(), found.locations().get("db.t"));
        assertEquals(1, found.locations().size());
        String text = "org.apache.hadoop.mapred.TextInputFormat";
        assertEquals(said.get("input_formats").get(text).asText(), found.inputFormats().get(text));
        assertEquals(Collections.singletonList(said.at("/undecided/0").asText()), found.undecided());
    }

    @Test
    void theVersionOfATable()
            throws Exception
    {
        TableVersion found = exchange("hive_get_table.call.bin", "hive_get_table.reply.bin", planner -> planner.describe(requestOfSegments("hive_get_table.call.bin")));
        assertEquals("s-7", found.snapshotId());
        assertEquals("[x, s, p]", found.columns().keySet().toString());
        assertEquals("decimal(10,2)", found.columns().get("x"));
    }

    @Test
    void aPlanAndItsFiles()
            throws Exception
    {
        FilePlan plan = exchange("hive_plan.call.bin", "hive_plan.reply.bin", planner -> planner.plan(requestOfSegments("hive_plan.call.bin").of(";segments=3,5", "s-7")));
        String ofViews = "hive_plan_of_views.call.bin";
        exchange(ofViews, "hive_plan.reply.bin", planner -> planner.plan(requestOfSegments(ofViews).of(";segments=3,5", "s-7").ofAllColumns(Collections.emptyList())));
        assertEquals("", plan.handle());
        assertTrue(plan.first().finished());
        JsonNode said = frame("hive_plan.reply.bin").at("/splits/files");
        List<PlannedFile> files = plan.first().splits().get(0);
        assertEquals(1, plan.first().splits().size());
        assertEquals(said.size(), files.size());
        for (int i = 0; i < files.size(); i++) {
            PlannedFile file = files.get(i);
            assertEquals(said.get(i).get("path").asText(), file.path());
            assertEquals(said.get(i).get("length").asLong(), file.length());
            assertEquals(said.get(i).get("size").asLong(), file.size());
            assertEquals(said.get(i).get("modified").asLong(), file.modified());
        }
        assertEquals(new ReaderSpec("csv", Collections.singletonMap("separatorChar", ";")), files.get(0).reader());
        assertEquals("parquet", files.get(1).reader().format());
        FileBatch last = exchange("hive_next_splits.call.bin", "hive_next_splits.reply.bin", planner -> planner.nextSplits("1-a/2b", 5_000_000_000L));
        assertTrue(last.finished() && last.splits().isEmpty());
    }

    @Test
    void aPlannerOfProtocol1IsRefused()
    {
        ProtocolException refused = assertThrows(ProtocolException.class, () -> exchange("protocol1_list_skippable_files.reply.bin"));
        assertTrue(refused.getMessage().contains("older than this client, which speaks protocol 2"), refused.getMessage());
    }

    @Test
    void aNewerPlannerThatRefusesTheseHooksIsOfAnotherProtocol()
            throws IOException
    {
        String file = "list_skippable_files_mismatch.reply.bin";
        ProtocolException refused = assertThrows(ProtocolException.class, () -> exchange(file));
        assertEquals(frame(file).at("/body/failure/message").asText(), refused.getMessage());
    }

    @Test
    void aMethodThatIsNotThereIsRefused()
    {
        assertThrows(ProtocolException.class, () -> exchange("unknown_method.exception.bin"));
    }

    private static JsonNode frame(String file)
            throws IOException
    {
        for (JsonNode frame : new ObjectMapper().readTree(Files.readAllBytes(FOLDER.resolve("frames.json")))) {
            if (frame.get("file").asText().equals(file)) {
                return frame;
            }
        }
        throw new AssertionError("no frame " + file);
    }

    private static FileRequest requestOfSegments(String call)
            throws IOException
    {
        JsonNode body = frame(call).get("body");
        JsonNode said = body.has("request") ? body.get("request") : body;
        return new FileRequest(
                said.get("schema_name").asText(),
                said.get("table_name").asText(),
                said.get("query_id").asText(),
                said.path("engine_version").asText(),
                said.path("predicate").asText(),
                Collections.singletonList("x"),
                "").of(said.get("read_version").asText(), "");
    }

    private static SkippableFiles exchange(String reply)
            throws Exception
    {
        JsonNode said = frame(CALL).at("/body/request");
        FileRequest request = new FileRequest(
                said.get("schema_name").asText(),
                said.get("table_name").asText(),
                said.get("query_id").asText(),
                said.get("engine_version").asText(),
                said.get("predicate").asText(),
                Collections.singletonList(said.at("/projected_columns/0").asText()),
                said.at("/options/table_columns").asText());
        return exchange(CALL, reply, planner -> planner.listSkippableFiles(request));
    }

    private interface Call<T>
    {
        T make(PlannerClient planner)
                throws Exception;
    }

    private static <T> T exchange(String call, String reply, Call<T> made)
            throws Exception
    {
        byte[] expected = Files.readAllBytes(FOLDER.resolve(call));
        byte[] received = new byte[expected.length];
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread thread = new Thread(() -> {
                try (Socket socket = server.accept()) {
                    new DataInputStream(socket.getInputStream()).readFully(received);
                    socket.getOutputStream().write(Files.readAllBytes(FOLDER.resolve(reply)));
                }
                catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
            thread.start();
            try {
                return made.make(new PlannerClient(new InetSocketAddress("127.0.0.1", server.getLocalPort()), 30_000));
            }
            finally {
                thread.join();
                assertArrayEquals(expected, received);
            }
        }
    }
}
