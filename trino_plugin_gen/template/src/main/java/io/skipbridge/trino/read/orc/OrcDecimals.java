package io.skipbridge.trino.read.orc;

import io.skipbridge.trino.read.block.NestedValues;
import io.trino.orc.OrcColumn;
import io.trino.orc.metadata.OrcType;
import io.trino.orc.metadata.OrcType.OrcTypeKind;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Decimals;
import io.trino.spi.type.Int128;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeOperators;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;

import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;
import static java.util.Objects.requireNonNull;

/**
 * Decimals under decimals of fewer digits before the point. Trino's reader rescales them without a look at the digits, so they are read with all digits
 * that there are, at any depth, and one that does not fit is an error.
 */
final class OrcDecimals
{
    private static final TypeOperators OPERATORS = new TypeOperators();

    private OrcDecimals() {}

    /**
     * The type in which a column is read; that of the table if all of the file's decimals fit.
     *
     * <p>Errors: NOT_SUPPORTED: Trino's reader does not read such decimals.
     */
    static Type readAs(String column, OrcColumn stored, Type table)
    {
        List<OrcColumn> parts = stored.getNestedColumns();
        return switch (table) {
            case DecimalType decimal -> fits(column, stored.getColumnType(), decimal) ? decimal : DecimalType.createDecimalType(Decimals.MAX_PRECISION, decimal.getScale());
            case ArrayType array when parts.size() == 1 -> new ArrayType(readAs(column, parts.getFirst(), array.getElementType()));
            case MapType map when parts.size() == 2 -> new MapType(readAs(column, parts.get(0), map.getKeyType()), readAs(column, parts.get(1), map.getValueType()), OPERATORS);
            case RowType row -> RowType.from(row.getFields().stream().map(field -> new RowType.Field(field.getName(), part(parts, field).map(each -> readAs(column, each, field.getType())).orElse(field.getType()))).toList());
            default -> table;
        };
    }

    /** Whether Trino's conversion of a decimal, at any depth, to one with more digits after the point may leave 64 bits without a word. */
    static boolean wraps(OrcColumn stored, Type table)
    {
        List<OrcColumn> parts = stored.getNestedColumns();
        return switch (table) {
            case DecimalType decimal -> wraps(stored.getColumnType(), decimal);
            case ArrayType array when parts.size() == 1 -> wraps(parts.getFirst(), array.getElementType());
            case MapType map when parts.size() == 2 -> wraps(parts.get(0), map.getKeyType()) || wraps(parts.get(1), map.getValueType());
            case RowType row -> row.getFields().stream().anyMatch(field -> part(parts, field).filter(each -> wraps(each, field.getType())).isPresent());
            default -> false;
        };
    }

    private static boolean wraps(OrcType stored, DecimalType table)
    {
        if (stored.getOrcTypeKind() != OrcTypeKind.DECIMAL || !table.isShort()) {
            return false;
        }
        int more = table.getScale() - stored.getScale().orElseThrow();
        int digits = stored.getPrecision().orElseThrow();
        return more > 0 && digits <= Decimals.MAX_SHORT_PRECISION && digits + more > Decimals.MAX_SHORT_PRECISION;
    }

    private static Optional<OrcColumn> part(List<OrcColumn> parts, RowType.Field field)
    {
        return parts.stream().filter(part -> part.getColumnName().equalsIgnoreCase(field.getName().orElse(""))).findFirst();
    }

    private static boolean fits(String column, OrcType stored, DecimalType table)
    {
        if (stored.getOrcTypeKind() != OrcTypeKind.DECIMAL) {
            return true;
        }
        int scale = stored.getScale().orElseThrow();
        int precision = stored.getPrecision().orElseThrow();
        if (table.isShort() && table.getScale() < scale) {
            throw new TrinoException(
                    NOT_SUPPORTED,
                    "column '%s' is decimal(%d,%d) in ORC, which is not read as %s. Declare the column as the file has it, or rewrite the file".formatted(column, precision, scale, table.getDisplayName()));
        }
        int spare = table.getPrecision() - table.getScale() - (precision - scale);
        // a value that is rounded may have a digit more
        return spare > 0 || (spare == 0 && table.getScale() >= scale);
    }

    /** From a type of {@link #readAs} to the table's; empty if they are the same. */
    static Optional<UnaryOperator<Block>> conversion(String column, Type read, Type table)
    {
        return read.equals(table) ? Optional.empty() : Optional.of(narrow(column, read, table));
    }

    private static UnaryOperator<Block> narrow(String column, Type read, Type table)
    {
        if (read.equals(table)) {
            return UnaryOperator.identity();
        }
        List<UnaryOperator<Block>> parts = new ArrayList<>();
        for (int i = 0; i < table.getTypeParameters().size(); i++) {
            parts.add(narrow(column, read.getTypeParameters().get(i), table.getTypeParameters().get(i)));
        }
        return switch (table) {
            case DecimalType decimal -> block -> narrow(column, block, read, decimal);
            case ArrayType _ -> block -> NestedValues.elements(block, parts.getFirst());
            case MapType map -> block -> NestedValues.entries(block, map, parts.get(0), parts.get(1));
            default -> block -> NestedValues.fields(block, fields -> {
                List<Block> changed = new ArrayList<>();
                for (int i = 0; i < fields.size(); i++) {
                    changed.add(parts.get(i).apply(fields.get(i)));
                }
                return changed;
            });
        };
    }

    private static Block narrow(String column, Block block, Type read, DecimalType table)
    {
        BlockBuilder into = table.createBlockBuilder(null, block.getPositionCount());
        for (int i = 0; i < block.getPositionCount(); i++) {
            if (block.isNull(i)) {
                into.appendNull();
                continue;
            }
            Int128 value = (Int128) requireNonNull(read.getObject(block, i));
            if (Decimals.overflows(value, table.getPrecision())) {
                throw new TrinoException(
                        NOT_SUPPORTED,
                        "column '%s' holds %s, which is no %s. Declare a wider type, or rewrite the file".formatted(column, Decimals.toString(value, table.getScale()), table.getDisplayName()));
            }
            if (table.isShort()) {
                table.writeLong(into, value.toLongExact());
            }
            else {
                table.writeObject(into, value);
            }
        }
        return into.build();
    }
}
