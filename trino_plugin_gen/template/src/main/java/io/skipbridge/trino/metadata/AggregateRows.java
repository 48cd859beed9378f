package io.skipbridge.trino.metadata;

import java.util.List;

import static java.util.Objects.requireNonNull;

/**
 * The rows of an aggregation that statistics answered.
 *
 * @param columns of each row: grouping columns, then aggregates
 * @param rows JSON, {@code [[…], …]}, with values as in docs/reference/predicates.md
 * @param text shown by EXPLAIN
 */
public record AggregateRows(List<BridgeColumnHandle> columns, String rows, int rowCount, String text)
{
    public AggregateRows
    {
        columns = List.copyOf(columns);
        requireNonNull(rows, "rows is null");
        requireNonNull(text, "text is null");
    }
}
