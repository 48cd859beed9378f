package io.skipbridge.trino.hive;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.airlift.slice.Slice;
import io.trino.metastore.HivePartition;
import io.trino.plugin.hive.HiveTableHandle;
import io.trino.plugin.hive.HiveWritableTableHandle;
import io.trino.spi.connector.SchemaTableName;

import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;

/** The partitions whose files a transaction writes or removes, by table; none: any of the table. */
final class WrittenPartitions
{
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String WITHOUT_PARTITIONS = "";

    private final Map<SchemaTableName, Optional<Set<String>>> names = new HashMap<>();

    /** Takes note of a call that ended: those that finish a write bring what the workers wrote. */
    synchronized void note(String method, Object[] arguments)
    {
        switch (method) {
            case "finishInsert", "finishCreateTable", "finishTableExecute" -> {
                if (arguments[1] instanceof HiveWritableTableHandle table) {
                    add(table.getSchemaTableName(), fragments(arguments));
                }
            }
            case "executeDelete", "truncateTable" -> {
                if (arguments[1] instanceof HiveTableHandle table) {
                    add(table.getSchemaTableName(), partitions(table));
                }
            }
            default -> {}
        }
    }

    private void add(SchemaTableName table, Optional<List<String>> written)
    {
        names.merge(table, written.map(TreeSet::new), (before, now) -> before.flatMap(known -> now.map(more -> {
            known.addAll(more);
            return known;
        })));
    }

    synchronized Map<SchemaTableName, List<String>> partitions()
    {
        Map<SchemaTableName, List<String>> found = new HashMap<>();
        names.forEach((table, written) -> {
            // a write that wrote nothing changed nothing
            if (written.isEmpty() || !written.get().isEmpty()) {
                found.put(table, written.map(List::copyOf).orElse(List.of()));
            }
        });
        return found;
    }

    /** The partitions that the workers name in the fragments of a write, which Hive reads as JSON too. */
    private static Optional<List<String>> fragments(Object[] arguments)
    {
        List<Slice> fragments = Arrays.stream(arguments)
                .flatMap(argument -> argument instanceof Collection<?> list ? list.stream() : Stream.empty())
                .filter(Slice.class::isInstance)
                .map(Slice.class::cast)
                .toList();
        Set<String> found = new TreeSet<>();
        for (Slice fragment : fragments) {
            try {
                found.add(JSON.readTree(fragment.getBytes()).required("name").asText());
            }
            catch (IOException | IllegalArgumentException e) {
                return Optional.empty();
            }
        }
        return Optional.of(List.copyOf(found));
    }

    private static Optional<List<String>> partitions(HiveTableHandle table)
    {
        if (table.getPartitionColumns().isEmpty()) {
            return Optional.of(List.of(WITHOUT_PARTITIONS));
        }
        return table.getPartitions().map(known -> known.stream().map(HivePartition::getPartitionId).toList()).or(table::getPartitionNames);
    }
}
