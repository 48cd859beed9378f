package io.skipbridge.trino.metadata;

import java.util.List;

import static java.util.Objects.requireNonNull;

/**
 * The rows of an aggregation that statistics answered.
 *
 * @param columns what each value of a row is: grouping columns, then aggregates
 * @param rows JSON, {@code [[…], …]}, with values as in docs/reference/predicates.md
 * @param text for EXPLAIN
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
