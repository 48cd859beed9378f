package io.skipbridge.trino.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.skipbridge.client.JsonText;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

/**
 * The writer against the vectors that Python reads too. They are in the repository only; a project generated elsewhere
 * skips them. With {@code -Dskipbridge.vectors.write=FILE} the writer's own output is written instead, to be read before it is committed.
 */
class TestPredicateWriter
{
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Path SHARED = Path.of("../../tests/vectors/trino_predicates.json");

    @Test
    void writesTheSharedVectors()
            throws IOException
    {
        Map<String, String> written = PredicateVectors.written();
        String target = System.getProperty("skipbridge.vectors.write");
        if (target != null) {
            write(written, Path.of(target));
            return;
        }
        Map<String, JsonNode> expected = new LinkedHashMap<>();
        assumeTrue(Files.exists(SHARED), "the shared vectors are in the repository only");
        for (JsonNode vector : MAPPER.readTree(Files.readAllBytes(SHARED))) {
            expected.put(vector.get("name").asText(), vector.get("json"));
        }
        assertEquals(expected.keySet(), written.keySet());
        for (Map.Entry<String, String> entry : written.entrySet()) {
            JsonNode json = entry.getValue().isEmpty() ? MAPPER.nullNode() : MAPPER.readTree(entry.getValue());
            assertEquals(expected.get(entry.getKey()), json, entry.getKey());
        }
    }

    @Test
    void quotesEveryControlCharacter()
            throws IOException
    {
        StringBuilder text = new StringBuilder("\"\\/\u2028\uD83D\uDE00");
        for (char c = 0; c < 0x20; c++) {
            text.append(c);
        }
        String json = new JsonText().string(text.toString()).toString();
        assertEquals(text.toString(), MAPPER.readTree(json).asText());
        assertTrue(json.startsWith("\"") && json.endsWith("\""));
    }

    private static void write(Map<String, String> written, Path target)
            throws IOException
    {
        ArrayNode vectors = MAPPER.createArrayNode();
        for (Map.Entry<String, String> entry : written.entrySet()) {
            ObjectNode vector = vectors.addObject().put("name", entry.getKey());
            vector.set("json", entry.getValue().isEmpty() ? MAPPER.nullNode() : MAPPER.readTree(entry.getValue()));
        }
        Files.write(target, MAPPER.writerWithDefaultPrettyPrinter().writeValueAsBytes(vectors));
    }
}
