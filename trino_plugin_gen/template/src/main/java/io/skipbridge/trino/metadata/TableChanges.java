package io.skipbridge.trino.metadata;

import io.trino.spi.function.table.ConnectorTableFunctionHandle;

import java.util.List;

import static java.util.Objects.requireNonNull;

/** The scan that a call of {@link TableChangesFunction} stands for. */
public record TableChanges(BridgeTableHandle table, List<BridgeColumnHandle> columns)
        implements ConnectorTableFunctionHandle
{
    public TableChanges
    {
        requireNonNull(table, "table is null");
        columns = List.copyOf(columns);
    }
}
