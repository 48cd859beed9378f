package io.skipbridge.trino.read.hudi;

import io.airlift.slice.Slices;
import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.read.block.NestedValues;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.DateType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Decimals;
import io.trino.spi.type.DoubleType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RealType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.UnaryOperator;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;

/** Values of a file in the types of the table, where the table's schema was changed since. A value that does not fit is an error. */
final class FileValues
{
    private interface Value
    {
        void write(Block block, int position, BlockBuilder into);
    }

    private FileValues() {}

    /**
     * A column of the table, by the columns that are read of a file.
     *
     * @param column how the file has it; empty if it does not
     * @param place of the file's column among those that are read
     */
    static Function<SourcePage, Block> channel(Optional<FileColumn> column, Type table, int place)
    {
        if (column.isEmpty()) {
            Block none = table.createNullBlock();
            return page -> RunLengthEncodedBlock.create(none, page.getPositionCount());
        }
        UnaryOperator<Block> values = to(column.get(), table);
        return page -> values.apply(page.getBlock(place));
    }

    /** @param column how the file has it */
    static UnaryOperator<Block> to(FileColumn column, Type table)
    {
        if (column.sameValues()) {
            return UnaryOperator.identity();
        }
        if (column.was().isPresent()) {
            Type file = column.typeIn(table);
            Value value = value(column, file, table);
            return block -> written(block, table, value);
        }
        return switch (table) {
            case RowType row -> fields(column, row);
            case ArrayType array -> {
                UnaryOperator<Block> elements = to(column.part("element").orElseThrow(), array.getElementType());
                yield block -> NestedValues.elements(block, elements);
            }
            case MapType map -> {
                UnaryOperator<Block> values = to(column.part("value").orElseThrow(), map.getValueType());
                yield block -> NestedValues.entries(block, map, UnaryOperator.identity(), values);
            }
            default -> throw column.unsupported(table);
        };
    }

    private static UnaryOperator<Block> fields(FileColumn column, RowType row)
    {
        int count = row.getFields().size();
        int[] places = new int[count];
        List<UnaryOperator<Block>> changes = new ArrayList<>();
        int next = 0;
        for (int i = 0; i < count; i++) {
            RowType.Field field = row.getFields().get(i);
            Optional<FileColumn> part = column.part(field.getName().orElseThrow());
            places[i] = part.isPresent() ? next++ : -1;
            changes.add(part.map(each -> to(each, field.getType())).orElse(UnaryOperator.identity()));
        }
        return block -> NestedValues.fields(block, held -> {
            List<Block> fields = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                fields.add(places[i] < 0
                        ? RunLengthEncodedBlock.create(row.getFields().get(i).getType().createNullBlock(), block.getPositionCount())
                        : changes.get(i).apply(held.get(places[i])));
            }
            return fields;
        });
    }

    private static Block written(Block block, Type table, Value value)
    {
        BlockBuilder into = table.createBlockBuilder(null, block.getPositionCount());
        for (int i = 0; i < block.getPositionCount(); i++) {
            if (block.isNull(i)) {
                into.appendNull();
            }
            else {
                value.write(block, i, into);
            }
        }
        return into.build();
    }

    private static Value value(FileColumn column, Type file, Type table)
    {
        if (file == INTEGER || file == BIGINT) {
            return switch (table) {
                case VarcharType text when text.isUnbounded() -> (block, at, into) -> text.writeSlice(into, Slices.utf8Slice(Long.toString(file.getLong(block, at))));
                case DecimalType decimal -> (block, at, into) -> write(column, BigDecimal.valueOf(file.getLong(block, at)), decimal, into);
                case DoubleType wide -> (block, at, into) -> wide.writeDouble(into, file.getLong(block, at));
                case RealType narrow -> (block, at, into) -> narrow.writeFloat(into, file.getLong(block, at));
                default -> {
                    if (table != BIGINT) {
                        throw column.unsupported(table);
                    }
                    yield (block, at, into) -> BIGINT.writeLong(into, file.getLong(block, at));
                }
            };
        }
        return switch (file) {
            case RealType real when table == DOUBLE -> (block, at, into) -> DOUBLE.writeDouble(into, real.getFloat(block, at));
            case DoubleType wide when table instanceof DecimalType decimal -> (block, at, into) -> {
                double value = wide.getDouble(block, at);
                if (!Double.isFinite(value)) {
                    throw outOfRange(column, Double.toString(value), decimal);
                }
                write(column, BigDecimal.valueOf(value).setScale(decimal.getScale(), RoundingMode.HALF_UP), decimal, into);
            };
            case DecimalType narrow when table instanceof DecimalType decimal -> (block, at, into) -> write(column, Decimals.readBigDecimal(narrow, block, at), decimal, into);
            case DecimalType narrow when table instanceof VarcharType text && text.isUnbounded() -> (block, at, into) ->
                    text.writeSlice(into, Slices.utf8Slice(Decimals.readBigDecimal(narrow, block, at).toString()));
            case DateType date when table instanceof VarcharType text && text.isUnbounded() -> (block, at, into) ->
                    text.writeSlice(into, Slices.utf8Slice(LocalDate.ofEpochDay(date.getInt(block, at)).toString()));
            default -> throw column.unsupported(table);
        };
    }

    private static void write(FileColumn column, BigDecimal value, DecimalType type, BlockBuilder into)
    {
        BigDecimal scaled;
        try {
            scaled = value.setScale(type.getScale(), RoundingMode.UNNECESSARY);
        }
        catch (ArithmeticException e) {
            throw outOfRange(column, value.toString(), type);
        }
        if (scaled.precision() > type.getPrecision()) {
            throw outOfRange(column, value.toString(), type);
        }
        if (type.isShort()) {
            type.writeLong(into, scaled.unscaledValue().longValueExact());
        }
        else {
            type.writeObject(into, Int128.valueOf(scaled.unscaledValue()));
        }
    }

    private static TrinoException outOfRange(FileColumn column, String value, DecimalType type)
    {
        return new TrinoException(
                BridgeErrorCode.TYPE_MISMATCH,
                "column '%s' of a file holds %s, which is no %s. Rewrite the table, or read it with Spark".formatted(column.name(), value, type.getDisplayName()));
    }
}
