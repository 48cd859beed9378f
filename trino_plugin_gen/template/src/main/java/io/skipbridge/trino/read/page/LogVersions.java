package io.skipbridge.trino.read.page;

import com.fasterxml.jackson.databind.JsonNode;
import io.skipbridge.trino.read.merge.LogColumns;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.StoredColumns;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
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

/** How the blocks of logs have the table's columns, by the instants that wrote them. Planners tell it where a log may be older than the table's schema. */
final class LogVersions
{
    private static final String PROPERTY = "skipbridge.hudi.older-logs";
    private static final Pattern INSTANT = Pattern.compile("[0-9]{1,18}");

    private final NavigableMap<Long, Version> since = new TreeMap<>();
    private final Map<String, Version> exceptions = new HashMap<>();

    private LogVersions(JsonNode told)
    {
        List<Version> versions = new ArrayList<>();
        told.get("versions").forEach(version -> {
            Set<String> names = new HashSet<>();
            version.get("names").forEach(name -> names.add(name.asText()));
            versions.add(new Version(Set.copyOf(names), FileColumn.columns(version.get("columns"))));
            since.put(version.get("since").asLong(), versions.getLast());
        });
        told.get("exceptions").properties().forEach(entry -> exceptions.put(entry.getKey(), versions.get(entry.getValue().asInt())));
    }

    /** Empty if all logs have the table's columns by name. */
    static Optional<LogVersions> of(ReaderSpec reader)
    {
        return FileColumn.told(reader, PROPERTY).map(LogVersions::new);
    }

    /** @throws UnsupportedSlice if it is not known how the instant's blocks have the columns */
    LogColumns at(String instant)
    {
        Version exception = exceptions.get(instant);
        if (exception != null) {
            return exception;
        }
        Map.Entry<Long, Version> found = INSTANT.matcher(instant).matches() ? since.floorEntry(Long.parseLong(instant)) : null;
        if (found == null) {
            throw new UnsupportedSlice("a block of its logs is of the instant '%s', whose columns are not known. Read the table once it is compacted, or with Spark".formatted(instant));
        }
        return found.getValue();
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
