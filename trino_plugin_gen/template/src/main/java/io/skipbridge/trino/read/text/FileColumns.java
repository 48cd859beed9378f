package io.skipbridge.trino.read.text;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.hive.formats.line.Column;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.type.TypeManager;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/**
 * The columns of a scan in the files of one partition: their places, the types in which they are read, and the conversion to the types of the table.
 * Files are read with the types of their partition, as Trino's hive connector does: an int that a bigint has replaced is NULL beyond an int's range.
 *
 * @param columns those that files have
 * @param conversions of each of them, to the table's type; empty if there is nothing to convert
 * @param channels of each column of the scan, its place in {@code columns}; -1 if files do not have it
 */
record FileColumns(List<Column> columns, List<Optional<UnaryOperator<Block>>> conversions, List<Integer> channels)
{
    private static final String COLUMNS = "columns";
    private static final String SERDE = "serialization.lib";

    FileColumns
    {
        columns = List.copyOf(columns);
        conversions = List.copyOf(conversions);
        channels = List.copyOf(channels);
    }

    /**
     * @param byName whether a column of the partition is the table's column of the same name; else it is the one at the same place
     */
    static FileColumns of(List<BridgeColumnHandle> wanted, PlannedFile file, boolean byName, TypeManager types)
    {
        ReaderSpec reader = file.reader();
        if (TypedCsv.is(reader)) {
            return TypedCsv.columns(wanted, file);
        }
        List<String> names = List.of(reader.properties().getOrDefault(COLUMNS, "").split(","));
        List<Column> columns = new ArrayList<>();
        List<Optional<UnaryOperator<Block>>> conversions = new ArrayList<>();
        for (BridgeColumnHandle column : wanted) {
            int place = names.indexOf(column.name());
            if (place < 0) {
                throw new TrinoException(
                        BridgeErrorCode.TYPE_MISMATCH,
                        "%s: the planner told no place of the column %s, only those of %s".formatted(file.path(), column.name(), names));
            }
            Optional<ReaderSpec.Column> declared = reader.columns().flatMap(all -> declared(all, column.name(), place, byName));
            Conversion conversion = declared.map(each -> Conversion.of(each.engineType(), column.type(), types, reader.properties().getOrDefault(SERDE, ""))
                            .orElseThrow(() -> mismatch(file, column, each)))
                    .orElseGet(() -> Conversion.none(column.type()));
            columns.add(new Column(column.name(), conversion.stored(), place));
            conversions.add(conversion.function());
        }
        return new FileColumns(columns, conversions, IntStream.range(0, columns.size()).boxed().toList());
    }

    private static Optional<ReaderSpec.Column> declared(List<ReaderSpec.Column> partition, String name, int place, boolean byName)
    {
        if (byName) {
            return partition.stream().filter(column -> column.name().equalsIgnoreCase(name)).findFirst();
        }
        return place < partition.size() ? Optional.of(partition.get(place)) : Optional.empty();
    }

    private static TrinoException mismatch(PlannedFile file, BridgeColumnHandle column, ReaderSpec.Column declared)
    {
        return new TrinoException(
                BridgeErrorCode.TYPE_MISMATCH,
                "%s: its partition declares the column %s as %s, the table declares %s as %s; this connector does not convert one to the other"
                        .formatted(file.path(), declared.name(), declared.engineType().isEmpty() ? "a type that Trino does not have" : declared.engineType(), column.name(), column.type().getDisplayName()));
    }

    boolean converts()
    {
        return conversions.stream().anyMatch(Optional::isPresent);
    }

    Block[] converted(Block[] blocks)
    {
        Block[] all = new Block[blocks.length];
        for (int i = 0; i < all.length; i++) {
            Block block = blocks[i];
            all[i] = conversions.get(i).map(conversion -> conversion.apply(block)).orElse(block);
        }
        return all;
    }
}
