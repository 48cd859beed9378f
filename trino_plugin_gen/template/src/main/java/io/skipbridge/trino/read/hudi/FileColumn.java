package io.skipbridge.trino.read.hudi;

import com.fasterxml.jackson.databind.JsonNode;
import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.wire.PlannerJson;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeOperators;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;

/**
 * A column of a file, or a part of a nested one, that has another name or type than in the table.
 *
 * @param was the file's type as Hudi spells it, if the table's was changed to another one
 * @param parts of a row by the table's names, of an array its {@code element}, of a map its {@code value}: those that differ. Empty where the file does
 * not have the part, whatever names it holds
 */
record FileColumn(String name, Optional<String> was, Map<String, Optional<FileColumn>> parts)
{
    private static final String PROPERTY = "skipbridge.hudi.columns";
    private static final TypeOperators OPERATORS = new TypeOperators();
    private static final Pattern DECIMAL = Pattern.compile("decimal\\((\\d+),(\\d+)\\)");

    FileColumn
    {
        parts = Map.copyOf(parts);
    }

    /** The columns that the planner tells, by the table's names. */
    static Map<String, Optional<FileColumn>> of(ReaderSpec reader)
    {
        return told(reader, PROPERTY).map(FileColumn::columns).orElse(Map.of());
    }

    /** A property that holds JSON; empty if it is not set. */
    static Optional<JsonNode> told(ReaderSpec reader, String property)
    {
        return Optional.ofNullable(reader.properties().get(property)).map(text -> PlannerJson.parse(property, text));
    }

    static Map<String, Optional<FileColumn>> columns(JsonNode told)
    {
        Map<String, Optional<FileColumn>> columns = new HashMap<>();
        told.properties().forEach(entry -> {
            JsonNode column = entry.getValue();
            columns.put(entry.getKey(), column.isNull() ? Optional.empty() : Optional.of(new FileColumn(
                    column.get("name").asText(),
                    Optional.ofNullable(column.get("was")).map(JsonNode::asText),
                    column.has("parts") ? columns(column.get("parts")) : Map.of())));
        });
        return columns;
    }

    /** How a file has a column or a part; empty if it does not have it. */
    static Optional<FileColumn> find(Map<String, Optional<FileColumn>> columns, String name)
    {
        String lower = name.toLowerCase(Locale.ENGLISH);
        return columns.getOrDefault(lower, Optional.of(new FileColumn(lower, Optional.empty(), Map.of())));
    }

    Optional<FileColumn> part(String name)
    {
        return find(parts, name);
    }

    /** Whether values are read as they are, though perhaps under another name. */
    boolean sameValues()
    {
        return was.isEmpty() && parts.isEmpty();
    }

    /** The type in which the file is read. */
    Type typeIn(Type table)
    {
        if (was.isPresent()) {
            return simple(was.get()).orElseThrow(() -> unsupported(table));
        }
        if (parts.isEmpty()) {
            return table;
        }
        return switch (table) {
            case RowType row -> {
                List<RowType.Field> fields = new ArrayList<>();
                for (RowType.Field field : row.getFields()) {
                    part(field.getName().orElseThrow()).ifPresent(part -> fields.add(RowType.field(part.name(), part.typeIn(field.getType()))));
                }
                if (fields.isEmpty()) {
                    throw unsupported(table);
                }
                yield RowType.from(fields);
            }
            case ArrayType array -> new ArrayType(part("element").orElseThrow(() -> unsupported(table)).typeIn(array.getElementType()));
            case MapType map -> new MapType(map.getKeyType(), part("value").orElseThrow(() -> unsupported(table)).typeIn(map.getValueType()), OPERATORS);
            default -> throw unsupported(table);
        };
    }

    TrinoException unsupported(Type table)
    {
        return new TrinoException(
                BridgeErrorCode.TYPE_MISMATCH,
                "column '%s' of a file is %s and became %s by a change of the table's schema, which is not read here. Rewrite the table, or read it with Spark"
                        .formatted(name, was.orElse("nested otherwise"), table.getDisplayName()));
    }

    private static Optional<Type> simple(String name)
    {
        Matcher decimal = DECIMAL.matcher(name);
        if (decimal.matches()) {
            return Optional.of(DecimalType.createDecimalType(Integer.parseInt(decimal.group(1)), Integer.parseInt(decimal.group(2))));
        }
        return switch (name) {
            case "int" -> Optional.of(INTEGER);
            case "long" -> Optional.of(BIGINT);
            case "float" -> Optional.of(REAL);
            case "double" -> Optional.of(DOUBLE);
            case "date" -> Optional.of(DATE);
            default -> Optional.empty();
        };
    }
}
