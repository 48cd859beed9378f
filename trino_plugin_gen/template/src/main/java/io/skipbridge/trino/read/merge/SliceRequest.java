package io.skipbridge.trino.read.merge;

import io.trino.spi.type.Type;

import java.util.List;
import java.util.Map;
import java.util.Optional;

import static java.util.Objects.requireNonNull;

/**
 * A slice to merge.
 *
 * @param properties of the reader, as the planner gave them
 * @param basePath URI of the base file; empty for a slice of logs alone
 * @param columns to return, in this order; their names are in lower case
 */
public record SliceRequest(Map<String, String> properties, Optional<String> basePath, List<Log> logs, List<Column> columns, SliceFiles files)
{
    /** A log is read up to the size that was planned. */
    public record Log(String path, long size) {}

    public record Column(String name, Type type) {}

    public SliceRequest
    {
        properties = Map.copyOf(properties);
        requireNonNull(basePath, "basePath is null");
        logs = List.copyOf(logs);
        columns = List.copyOf(columns);
        requireNonNull(files, "files is null");
    }
}
