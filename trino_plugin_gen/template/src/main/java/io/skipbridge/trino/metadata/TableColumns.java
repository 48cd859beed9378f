package io.skipbridge.trino.metadata;

import io.skipbridge.trino.wire.ColumnDescription;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.ConnectorViewDefinition;
import io.trino.spi.type.TypeManager;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A table's columns as the engine takes them: handles by name, hidden columns last. */
record TableColumns(TableDescription description, Map<String, BridgeColumnHandle> handles, List<ColumnMetadata> metadata, Optional<ConnectorViewDefinition> view)
{
    private static final List<BridgeColumnHandle> HIDDEN = List.of(
            BridgeColumnHandle.PATH,
            BridgeColumnHandle.FILE_SIZE,
            BridgeColumnHandle.FILE_MODIFIED_TIME,
            BridgeColumnHandle.PARTITION);

    static TableColumns of(TableDescription table, TypeManager types)
    {
        if (table.view().isPresent()) {
            return new TableColumns(table, Map.of(), List.of(), Optional.of(ViewReader.read(table)));
        }
        Map<String, BridgeColumnHandle> handles = new LinkedHashMap<>();
        List<ColumnMetadata> metadata = new ArrayList<>();
        int keys = 0;
        int data = 0;
        for (ColumnDescription column : table.columns()) {
            int ordinal = column.partitionKey() ? keys++ : data++;
            if (column.engineType().isEmpty()) {
                continue;
            }
            BridgeColumnHandle handle = new BridgeColumnHandle(
                    column.name(),
                    types.fromSqlType(column.engineType()),
                    column.partitionKey() ? ColumnKind.PARTITION_KEY : ColumnKind.DATA,
                    ordinal);
            handles.put(handle.name(), handle);
            metadata.add(ColumnMetadata.builder()
                    .setName(handle.name())
                    .setType(handle.type())
                    .setComment(column.comment())
                    .setExtraInfo(column.partitionKey() ? Optional.of("partition key") : Optional.empty())
                    .build());
        }
        for (BridgeColumnHandle hidden : HIDDEN) {
            if (hidden.kind() != ColumnKind.PARTITION || keys > 0) {
                handles.put(hidden.name(), hidden);
                metadata.add(ColumnMetadata.builder().setName(hidden.name()).setType(hidden.type()).setHidden(true).build());
            }
        }
        return new TableColumns(table, handles, List.copyOf(metadata), Optional.empty());
    }

    ColumnMetadata metadata(BridgeColumnHandle column)
    {
        return metadata.stream()
                .filter(known -> known.getName().equals(column.name()))
                .findFirst()
                .orElseGet(() -> ColumnMetadata.builder().setName(column.name()).setType(column.type()).setHidden(column.kind().hidden()).build());
    }
}
