package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.UnsupportedSlice;
import org.apache.avro.Schema;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * A block's schema under the names of the table's. Columns are found by their names in any case, in blocks as in Parquet files; Avro's reader compares
 * names as they are. Values of records are found by their places, so other names change none.
 */
final class TableNames
{
    private static final Recent<Key, String> KNOWN = new Recent<>(key -> spell(key.written(), key.table()));

    private TableNames() {}

    private record Key(String written, Schema table) {}

    /**
     * The schema, where a name that the table has only in another case is the table's. It is the same text if there is none.
     *
     * @throws UnsupportedSlice if that is not one field of the block and one of the table
     */
    static String in(String written, Schema table)
    {
        return KNOWN.get(new Key(written, table));
    }

    private static String spell(String text, Schema table)
    {
        Schema written = new Schema.Parser().setValidateDefaults(false).parse(text);
        Schema spelled = spell(written, table);
        return spelled == written ? text : spelled.toString();
    }

    /** The same object if no name changes. */
    private static Schema spell(Schema written, Schema table)
    {
        if (written.getType() == Schema.Type.UNION) {
            List<Schema> types = written.getTypes().stream().map(each -> spell(each, table)).toList();
            return types.equals(written.getTypes()) ? written : Schema.createUnion(types);
        }
        Schema same = branch(table, written.getType());
        if (same == null) {
            return written;
        }
        return switch (written.getType()) {
            case RECORD -> record(written, same);
            case ARRAY -> {
                Schema element = spell(written.getElementType(), same.getElementType());
                yield element == written.getElementType() ? written : Schema.createArray(element);
            }
            case MAP -> {
                Schema value = spell(written.getValueType(), same.getValueType());
                yield value == written.getValueType() ? written : Schema.createMap(value);
            }
            // Spark names them after their column
            case FIXED -> isOtherCase(written.getFullName(), same.getFullName()) && written.getFixedSize() == same.getFixedSize() && written.getObjectProps().equals(same.getObjectProps()) ? same : written;
            case ENUM -> isOtherCase(written.getFullName(), same.getFullName()) && written.getEnumSymbols().equals(same.getEnumSymbols()) ? same : written;
            default -> written;
        };
    }

    /** What a schema has of a type; null if that is none, or several. */
    private static Schema branch(Schema schema, Schema.Type type)
    {
        List<Schema> types = schema.getType() == Schema.Type.UNION ? schema.getTypes() : List.of(schema);
        List<Schema> found = types.stream().filter(each -> each.getType() == type).toList();
        return found.size() == 1 ? found.getFirst() : null;
    }

    private static Schema record(Schema written, Schema table)
    {
        Schema named = isOtherCase(written.getFullName(), table.getFullName()) ? table : written;
        boolean isSame = named == written;
        Set<String> taken = new HashSet<>();
        List<Schema.Field> fields = new ArrayList<>();
        for (Schema.Field field : written.getFields()) {
            Schema.Field same = find(field.name(), written, table);
            if (same != null && !taken.add(same.name())) {
                throw ambiguous(field.name());
            }
            String name = same == null ? field.name() : same.name();
            Schema type = same == null ? field.schema() : spell(field.schema(), same.schema());
            isSame &= name.equals(field.name()) && type == field.schema();
            // a reader takes defaults of its own schema alone
            fields.add(new Schema.Field(name, type, field.doc()));
        }
        return isSame ? written : Schema.createRecord(named.getName(), written.getDoc(), named.getNamespace(), written.isError(), fields);
    }

    /** The table's field that a field of a block is; null: it has none. */
    private static Schema.Field find(String name, Schema written, Schema table)
    {
        Schema.Field exact = table.getField(name);
        if (exact != null) {
            return exact;
        }
        List<Schema.Field> found = table.getFields().stream()
                .filter(field -> isOtherCase(field.name(), name) && written.getField(field.name()) == null)
                .toList();
        if (found.size() > 1) {
            throw ambiguous(name);
        }
        return found.isEmpty() ? null : found.getFirst();
    }

    private static boolean isOtherCase(String name, String other)
    {
        return !name.equals(other) && AvroTypes.lower(name).equals(AvroTypes.lower(other));
    }

    private static UnsupportedSlice ambiguous(String name)
    {
        return new UnsupportedSlice("a block of its logs or the table has several columns that differ from %s only in case. Rewrite the table with other names".formatted(name));
    }
}
