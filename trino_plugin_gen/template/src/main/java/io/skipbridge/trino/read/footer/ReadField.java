package io.skipbridge.trino.read.footer;

import io.skipbridge.trino.read.block.NestedValues;
import io.trino.parquet.Field;
import io.trino.parquet.GroupField;
import io.trino.parquet.PrimitiveField;
import io.trino.spi.block.Block;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeOperators;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;

/**
 * How a column of a file is read as the table's type. A pair of types that Trino's reader decodes exactly is read by it. Of other pairs the file's type is
 * read and converted, at any depth, or the column is refused.
 *
 * @param field what the reader is asked for
 * @param conversion from what it returns to the table's type; empty if that is the same
 * @param refusal why the column cannot be read
 */
record ReadField(Field field, Optional<UnaryOperator<Block>> conversion, Optional<String> refusal)
{
    private static final TypeOperators OPERATORS = new TypeOperators();

    /** @param asked the file's column with types of the table */
    static ReadField of(String column, Field asked)
    {
        return switch (asked) {
            case PrimitiveField leaf -> ReadLeaf.of(column, leaf.getDescriptor().getPrimitiveType(), leaf.getType())
                    .map(read -> new ReadField(new PrimitiveField(read.type(), leaf.isRequired(), leaf.getDescriptor(), leaf.getId()), read.conversion(), Optional.empty()))
                    .orElseGet(() -> new ReadField(leaf, Optional.empty(), Optional.of(ReadLeaf.refusal(column, leaf.getDescriptor().getPrimitiveType(), leaf.getType()))));
            case GroupField group -> group(column, group);
            default -> unchanged(asked);
        };
    }

    private static ReadField unchanged(Field field)
    {
        return new ReadField(field, Optional.empty(), Optional.empty());
    }

    private static ReadField group(String column, GroupField group)
    {
        List<Optional<ReadField>> parts = group.getChildren().stream().map(child -> child.map(each -> of(column, each))).toList();
        Optional<String> refusal = parts.stream().flatMap(Optional::stream).map(ReadField::refusal).flatMap(Optional::stream).findFirst();
        if (refusal.isPresent()) {
            return new ReadField(group, Optional.empty(), refusal);
        }
        if (parts.stream().flatMap(Optional::stream).allMatch(part -> part.conversion().isEmpty())) {
            return unchanged(group);
        }
        Type read = typeOf(group.getType(), parts);
        List<Optional<Field>> fields = parts.stream().map(part -> part.map(ReadField::field)).toList();
        Field field = new GroupField(read, group.getRepetitionLevel(), group.getDefinitionLevel(), group.isRequired(), fields);
        return new ReadField(field, Optional.of(conversionOf(group.getType(), parts)), Optional.empty());
    }

    private static Type typeOf(Type table, List<Optional<ReadField>> parts)
    {
        List<Type> types = new ArrayList<>();
        for (int i = 0; i < parts.size(); i++) {
            Type unread = table.getTypeParameters().get(i);
            types.add(parts.get(i).map(part -> part.field().getType()).orElse(unread));
        }
        return switch (table) {
            case ArrayType _ -> new ArrayType(types.getFirst());
            case MapType _ -> new MapType(types.get(0), types.get(1), OPERATORS);
            case RowType row -> {
                List<RowType.Field> fields = new ArrayList<>();
                for (int i = 0; i < types.size(); i++) {
                    fields.add(new RowType.Field(row.getFields().get(i).getName(), types.get(i)));
                }
                yield RowType.from(fields);
            }
            default -> throw new IllegalArgumentException("no nested type: " + table);
        };
    }

    private static UnaryOperator<Block> conversionOf(Type table, List<Optional<ReadField>> parts)
    {
        List<UnaryOperator<Block>> changes = parts.stream().map(part -> part.flatMap(ReadField::conversion).orElse(UnaryOperator.identity())).toList();
        return switch (table) {
            case ArrayType _ -> block -> NestedValues.elements(block, changes.getFirst());
            case MapType map -> block -> NestedValues.entries(block, map, changes.get(0), changes.get(1));
            default -> block -> NestedValues.fields(block, held -> {
                List<Block> fields = new ArrayList<>();
                for (int i = 0; i < held.size(); i++) {
                    fields.add(changes.get(i).apply(held.get(i)));
                }
                return fields;
            });
        };
    }
}
