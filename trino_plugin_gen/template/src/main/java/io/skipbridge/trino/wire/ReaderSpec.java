package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.util.List;
import java.util.Map;
import java.util.Optional;

import static java.util.Objects.requireNonNull;

/**
 * How a file is read.
 *
 * @param properties of the SerDe
 * @param columns that the file was written with; empty where they are the table's
 */
public record ReaderSpec(String format, Map<String, String> properties, Optional<List<Column>> columns)
{
    /** A column, with its type in the engine's syntax; that is empty if the engine has no such type. */
    public record Column(String name, String engineType)
    {
        static Column read(BinaryReader reader)
        {
            ColumnDescription column = ColumnDescription.read(reader);
            return new Column(column.name(), column.engineType());
        }
    }

    public static final ReaderSpec PARQUET = new ReaderSpec("parquet", Map.of(), Optional.empty());

    public ReaderSpec
    {
        requireNonNull(format, "format is null");
        properties = Map.copyOf(properties);
        columns = columns.map(List::copyOf);
    }

    static ReaderSpec read(BinaryReader reader)
    {
        String format = "";
        Map<String, String> properties = Map.of();
        Optional<List<Column>> columns = Optional.empty();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> format = reader.is(WireType.STRING) ? reader.string() : format;
                case 2 -> properties = reader.is(WireType.MAP) ? reader.stringMap() : properties;
                case 3 -> columns = reader.is(WireType.LIST) ? Optional.of(reader.structs(Column::read)) : columns;
                default -> reader.skip();
            }
        }
        return new ReaderSpec(format, properties, columns);
    }
}
