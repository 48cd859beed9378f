package io.skipbridge.trino.split;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.trino.plugin.base.metrics.LongCount;
import io.trino.spi.metrics.Metric;
import io.trino.spi.metrics.Metrics;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/** Turns the planner's PruneReport into engine metrics: total files, kept files, and the counts of each stage. */
final class PruneMetrics
{
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private PruneMetrics() {}

    static Metrics of(Optional<String> report)
    {
        return report.map(PruneMetrics::read).orElse(Metrics.EMPTY);
    }

    private static Metrics read(String report)
    {
        JsonNode root;
        try {
            root = MAPPER.readTree(report);
        }
        catch (IOException e) {
            return Metrics.EMPTY;
        }
        Map<String, Metric<?>> metrics = new LinkedHashMap<>();
        count(metrics, "skipbridge files total", root.at("/files/total"));
        count(metrics, "skipbridge files kept", root.at("/files/kept"));
        for (JsonNode stage : root.path("stages")) {
            String index = stage.path("index").asText("");
            String name = "skipbridge " + stage.path("name").asText() + (index.isEmpty() || index.equals("null") ? "" : " " + index);
            count(metrics, name + " total", stage.path("total"));
            count(metrics, name + " kept", stage.path("kept"));
        }
        return new Metrics(metrics);
    }

    private static void count(Map<String, Metric<?>> metrics, String name, JsonNode value)
    {
        if (value.isIntegralNumber()) {
            metrics.put(name, new LongCount(value.longValue()));
        }
    }
}
