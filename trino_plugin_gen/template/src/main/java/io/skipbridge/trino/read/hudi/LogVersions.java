package io.skipbridge.trino.read.hudi;

import com.fasterxml.jackson.databind.JsonNode;
import io.skipbridge.trino.read.merge.LogColumns;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.StoredColumns;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.skipbridge.trino.wire.PlannerJson;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * How the blocks of logs have the table's columns, by the instants that wrote them. Planners tell it where a log may be older than the table's schema:
 * of each version of the schema what differs from the version before.
 */
final class LogVersions
{
    private static final String PROPERTY = "skipbridge.hudi.older-logs";
    private static final Pattern INSTANT = Pattern.compile("[0-9]{1,18}");

    private final NavigableMap<Long, Version> since = new TreeMap<>();
    private final Map<String, Optional<Version>> exceptions = new HashMap<>();

    private LogVersions(JsonNode told)
    {
        List<Version> versions = new ArrayList<>();
        Map<String, Optional<FileColumn>> columns = new HashMap<>();
        Set<String> names = new HashSet<>();
        if (!told.has("changes") || !told.has("exceptions")) {
            throw PlannerJson.notUnderstood(PROPERTY, null);
        }
        told.get("changes").forEach(version -> {
            version.path("same").forEach(name -> columns.remove(name.asText()));
            columns.putAll(FileColumn.columns(version.path("columns")));
            version.path("names").forEach(name -> {
                if (!names.remove(name.asText())) {
                    names.add(name.asText());
                }
            });
            versions.add(new Version(Set.copyOf(names), Map.copyOf(columns)));
            since.put(version.get("since").asLong(), versions.getLast());
        });
        told.get("exceptions").properties().forEach(entry -> {
            int place = entry.getValue().asInt();
            exceptions.put(entry.getKey(), place < 0 ? Optional.empty() : Optional.of(versions.get(place)));
        });
    }

    /** Empty if all logs have the table's columns by name. */
    static Optional<LogVersions> of(ReaderSpec reader)
    {
        return FileColumn.told(reader, PROPERTY).map(LogVersions::new);
    }

    /** @throws UnsupportedSlice if it is not known how the instant's blocks have the columns */
    LogColumns at(String instant)
    {
        return exceptions.getOrDefault(instant, newest(instant))
                .orElseThrow(() -> new UnsupportedSlice("a block of its logs is of the instant '%s', whose columns are not known. Read the table once it is compacted, or with Spark".formatted(instant)));
    }

    private Optional<Version> newest(String instant)
    {
        return INSTANT.matcher(instant).matches() ? Optional.ofNullable(since.floorEntry(Long.parseLong(instant))).map(Map.Entry::getValue) : Optional.empty();
    }

    private record Version(Set<String> names, Map<String, Optional<FileColumn>> own)
            implements LogColumns
    {
        @Override
        public boolean isSame(String column)
        {
            return !own.containsKey(column.toLowerCase(Locale.ENGLISH));
        }

        @Override
        public StoredColumns stored(List<SliceRequest.Column> columns)
        {
            List<SliceRequest.Column> stored = new ArrayList<>();
            List<Function<SourcePage, Block>> channels = new ArrayList<>();
            for (SliceRequest.Column column : columns) {
                Optional<FileColumn> found = FileColumn.find(own, column.name());
                channels.add(FileValues.channel(found, column.type(), stored.size()));
                found.ifPresent(each -> stored.add(new SliceRequest.Column(each.name(), each.typeIn(column.type()))));
            }
            return new StoredColumns(stored, page -> {
                SourcePage source = SourcePage.create(page);
                return new Page(page.getPositionCount(), channels.stream().map(channel -> channel.apply(source)).toArray(Block[]::new));
            });
        }
    }
}
