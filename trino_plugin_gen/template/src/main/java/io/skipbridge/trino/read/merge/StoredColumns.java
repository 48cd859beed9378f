package io.skipbridge.trino.read.merge;

import io.trino.spi.Page;

import java.util.List;
import java.util.function.UnaryOperator;

import static java.util.Objects.requireNonNull;

/**
 * Columns as they are stored.
 *
 * @param columns the stored names and types; a file may lack some, which are then NULL
 * @param toTable turns rows of these columns into rows of the table's
 */
public record StoredColumns(List<SliceRequest.Column> columns, UnaryOperator<Page> toTable)
{
    public StoredColumns
    {
        columns = List.copyOf(columns);
        requireNonNull(toTable, "toTable is null");
    }
}
