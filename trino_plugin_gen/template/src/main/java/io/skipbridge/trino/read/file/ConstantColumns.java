package io.skipbridge.trino.read.file;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.trino.spi.block.Block;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.DateTimeEncoding.packDateTimeWithZone;
import static io.trino.spi.type.TimeZoneKey.UTC_KEY;
import static io.trino.spi.type.TypeUtils.writeNativeValue;

/** Columns with one value in a whole file: partition keys and properties of the file. */
public final class ConstantColumns
{
    private final List<BridgeColumnHandle> channels;
    private final Map<PartitionEntry, Map<BridgeColumnHandle, Object>> partitionValues = new HashMap<>();
    private final Map<PartitionEntry, Map<BridgeColumnHandle, Block>> partitionBlocks = new HashMap<>();

    public ConstantColumns(List<BridgeColumnHandle> channels)
    {
        this.channels = channels;
    }

    /** A block of one position for each constant channel; null for a channel of data. */
    public Block[] blocks(PlannedFile file)
    {
        Block[] blocks = new Block[channels.size()];
        for (int i = 0; i < blocks.length; i++) {
            BridgeColumnHandle column = channels.get(i);
            blocks[i] = switch (column.kind()) {
                case DATA -> null;
                case PARTITION_KEY, PARTITION -> partitionBlocks
                        .computeIfAbsent(file.partition(), _ -> new HashMap<>())
                        .computeIfAbsent(column, key -> writeNativeValue(key.type(), value(key, file)));
                case PATH, FILE_SIZE, FILE_MODIFIED_TIME -> writeNativeValue(column.type(), value(column, file));
            };
        }
        return blocks;
    }

    /** False if the file's constants contradict the predicate, so that none of its rows matches. */
    public boolean mayMatch(PlannedFile file, TupleDomain<BridgeColumnHandle> predicate)
    {
        if (predicate.isNone()) {
            return false;
        }
        for (Map.Entry<BridgeColumnHandle, Domain> entry : predicate.getDomains().orElseThrow().entrySet()) {
            BridgeColumnHandle column = entry.getKey();
            if (!column.isData() && ((isTooLong(column, file) && entry.getValue().isNullableDiscreteSet()) || !entry.getValue().includesNullableValue(value(column, file)))) {
                return false;
            }
        }
        return true;
    }

    private static boolean isTooLong(BridgeColumnHandle column, PlannedFile file)
    {
        List<String> values = file.partition().values();
        return column.kind() == ColumnKind.PARTITION_KEY && column.ordinal() < values.size() && !file.partition().nulls()[column.ordinal()] && PartitionValue.isTooLong(column.type(), values.get(column.ordinal()));
    }

    private Object value(BridgeColumnHandle column, PlannedFile file)
    {
        return switch (column.kind()) {
            case PATH -> utf8Slice(file.path());
            case FILE_SIZE -> file.size();
            case FILE_MODIFIED_TIME -> file.modifiedMillis() < 0 ? null : packDateTimeWithZone(file.modifiedMillis(), UTC_KEY);
            case PARTITION -> utf8Slice(file.partition().name());
            case PARTITION_KEY -> partitionKey(column, file.partition());
            case DATA -> throw new IllegalArgumentException(column + " has no constant value");
        };
    }

    private Object partitionKey(BridgeColumnHandle column, PartitionEntry partition)
    {
        if (column.ordinal() >= partition.values().size() || partition.nulls()[column.ordinal()]) {
            return null;
        }
        Map<BridgeColumnHandle, Object> values = partitionValues.computeIfAbsent(partition, _ -> new HashMap<>());
        return values.computeIfAbsent(column, key -> PartitionValue.parse(key.type(), partition.values().get(key.ordinal()), partition.name()));
    }
}
