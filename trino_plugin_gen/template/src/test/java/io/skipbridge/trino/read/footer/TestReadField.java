package io.skipbridge.trino.read.footer;

import io.skipbridge.trino.read.block.NestedBlocks;
import io.trino.parquet.Field;
import io.trino.parquet.GroupField;
import io.trino.parquet.PrimitiveField;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.DictionaryBlock;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Decimals;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeOperators;
import io.trino.spi.type.VarcharType;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Types;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarbinaryType.VARBINARY;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestReadField
{
    private static final DecimalType WIDE = DecimalType.createDecimalType(20, 0);
    private static final PrimitiveType INT = Types.optional(PrimitiveTypeName.INT32).named("c");
    private static final PrimitiveType LONG = Types.optional(PrimitiveTypeName.INT64).named("c");
    private static final PrimitiveType UINT = Types.optional(PrimitiveTypeName.INT32).as(LogicalTypeAnnotation.intType(32, false)).named("c");
    private static final PrimitiveType ULONG = Types.optional(PrimitiveTypeName.INT64).as(LogicalTypeAnnotation.intType(64, false)).named("c");
    private static final PrimitiveType DIGITS = Types.optional(PrimitiveTypeName.INT64).as(LogicalTypeAnnotation.decimalType(0, 18)).named("c");

    @Test
    void anIntegerUnderAFloatIsCastAsJavaCasts()
    {
        assertEquals(List.of("1.0", "-5.0", "1.6777216E7", "null"), read(INT, REAL, 1L, -5L, 16777217L, null));
        assertEquals(List.of("1.0", "70000.0", "1.6777217E7"), read(INT, DOUBLE, 1L, 70000L, 16777217L));
        for (long value : new long[] {0, -1, Long.MAX_VALUE, Long.MIN_VALUE, (1L << 53) + 1, (1L << 24) + 1, 123456789123456789L}) {
            assertEquals(List.of(String.valueOf((float) value)), read(LONG, REAL, value));
            assertEquals(List.of(String.valueOf((double) value)), read(LONG, DOUBLE, value));
        }
        assertEquals(List.of("1.8446744E19"), read(ULONG, REAL, -1L));
        assertEquals(List.of("4.294967295E9"), read(UINT, DOUBLE, -1L));
        assertEquals(List.of("7.0"), read(DIGITS, REAL, 7L));
    }

    @Test
    void aNumberWithoutASignIsNotNegative()
    {
        assertEquals(List.of("1", "2147483648", "4294967295"), read(UINT, BIGINT, 1L, (long) Integer.MIN_VALUE, -1L));
        assertEquals(List.of("4294967295"), read(UINT, WIDE, -1L));
        assertEquals(List.of("4294967295"), read(UINT, VARCHAR, -1L));
        assertEquals(List.of("1", "18446744073709551615"), read(ULONG, WIDE, 1L, -1L));
        assertEquals(List.of("7"), read(UINT, INTEGER, 7L));
        assertRefusesValue(UINT, INTEGER, -1L);
        assertRefusesValue(ULONG, BIGINT, -1L);
        assertRefusesValue(INT, TINYINT, 128L);
        assertRefusesValue(LONG, SMALLINT, -32769L);
        assertEquals(List.of("-32768"), read(LONG, SMALLINT, -32768L));
        assertRefusesValue(LONG, VarcharType.createVarcharType(3), 1234L);
        assertEquals(List.of("-9999.0"), read(INT, DecimalType.createDecimalType(5, 1), -9999L));
        assertRefusesValue(INT, DecimalType.createDecimalType(5, 1), 10_000L);
        assertRefusesValue(LONG, DecimalType.createDecimalType(18, 9), 1_000_000_000L);
        assertTrue(field(INT, DecimalType.createDecimalType(18, 8)).conversion().isEmpty());
    }

    @Test
    void everyOtherPairIsDecodedExactlyOrRefused()
    {
        List<Type> tables = List.of(BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DATE, TIMESTAMP_MICROS, VARCHAR, VarcharType.createVarcharType(3), VARBINARY, WIDE);
        PrimitiveType bytes = Types.optional(PrimitiveTypeName.BINARY).as(LogicalTypeAnnotation.decimalType(2, 5)).named("c");
        PrimitiveType half = Types.optional(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY).length(2).as(LogicalTypeAnnotation.float16Type()).named("c");
        PrimitiveType date = Types.optional(PrimitiveTypeName.INT32).as(LogicalTypeAnnotation.dateType()).named("c");
        PrimitiveType time = Types.optional(PrimitiveTypeName.INT32).as(LogicalTypeAnnotation.timeType(false, LogicalTypeAnnotation.TimeUnit.MILLIS)).named("c");
        assertEquals(List.of(VARCHAR, VarcharType.createVarcharType(3), WIDE), readable(bytes, tables));
        assertEquals(List.of(VARBINARY), readable(half, tables));
        assertEquals(List.of(VARCHAR, VarcharType.createVarcharType(3)), readable(Types.optional(PrimitiveTypeName.INT96).named("c"), tables.stream().filter(VarcharType.class::isInstance).toList()));
        assertEquals(List.of(DATE, VARCHAR, VarcharType.createVarcharType(3)), readable(date, tables));
        assertEquals(List.of(), readable(time, tables));
        assertTrue(!readable(LONG, tables).contains(DATE) && !readable(DIGITS, tables).contains(DATE));
        assertEquals(List.of(DOUBLE, VARCHAR, VarcharType.createVarcharType(3)), readable(Types.optional(PrimitiveTypeName.DOUBLE).named("c"), tables));
        PrimitiveType small = Types.optional(PrimitiveTypeName.INT32).as(LogicalTypeAnnotation.intType(16, false)).named("c");
        assertTrue(readable(small, tables).contains(DATE) && !readable(UINT, tables).contains(DATE));
        String refusal = field(LONG, DATE).refusal().orElseThrow();
        assertTrue(refusal.contains("column 'c'") && refusal.contains("int64") && refusal.contains("date"), refusal);
    }

    @Test
    void partsOfNestedTypesAreConvertedToo()
    {
        Field element = leaf(UINT, BIGINT);
        GroupField list = new GroupField(new ArrayType(BIGINT), 1, 2, false, List.of(Optional.of(element)));
        ReadField read = ReadField.of("c", list);
        assertEquals(new ArrayType(INTEGER), read.field().getType());
        Block held = NestedBlocks.lists(new boolean[] {false, true, false}, new int[] {0, 2, 2, 3}, numbers(INTEGER, -1L, null, 5L));
        Block lists = read.conversion().orElseThrow().apply(DictionaryBlock.create(3, held, new int[] {2, 1, 0}));
        assertTrue(lists.isNull(1));
        Block first = new ArrayType(BIGINT).getObject(lists, 2);
        assertEquals(4294967295L, BIGINT.getLong(first, 0));
        assertTrue(first.isNull(1));
        assertEquals(5, BIGINT.getLong(new ArrayType(BIGINT).getObject(lists, 0), 0));

        RowType row = RowType.rowType(RowType.field("a", REAL), RowType.field("b", new ArrayType(BIGINT)), RowType.field("gone", DATE));
        GroupField struct = new GroupField(row, 0, 1, false, List.of(Optional.of(leaf(INT, REAL)), Optional.of(list), Optional.empty()));
        assertEquals(RowType.rowType(RowType.field("a", INTEGER), RowType.field("b", new ArrayType(INTEGER)), RowType.field("gone", DATE)), ReadField.of("c", struct).field().getType());

        MapType map = new MapType(BIGINT, row, new TypeOperators());
        GroupField entries = new GroupField(map, 1, 2, false, List.of(Optional.of(leaf(UINT, BIGINT)), Optional.of(struct)));
        assertEquals(INTEGER, ((MapType) ReadField.of("c", entries).field().getType()).getKeyType());

        GroupField bad = new GroupField(new ArrayType(DATE), 1, 2, false, List.of(Optional.of(leaf(LONG, DATE))));
        assertTrue(ReadField.of("c", bad).refusal().isPresent());
        GroupField same = new GroupField(new ArrayType(BIGINT), 1, 2, false, List.of(Optional.of(leaf(INT, BIGINT))));
        assertTrue(ReadField.of("c", same).conversion().isEmpty());
    }

    private static List<Type> readable(PrimitiveType stored, List<Type> tables)
    {
        return tables.stream().filter(table -> field(stored, table).refusal().isEmpty()).toList();
    }

    private static void assertRefusesValue(PrimitiveType stored, Type table, long value)
    {
        TrinoException failure = assertThrows(TrinoException.class, () -> read(stored, table, value));
        assertTrue(failure.getMessage().startsWith("column 'c' holds "), failure.getMessage());
    }

    private static List<String> read(PrimitiveType stored, Type table, Long... values)
    {
        ReadField read = field(stored, table);
        Block block = read.conversion().orElseThrow().apply(numbers(read.field().getType(), values));
        List<String> found = new ArrayList<>();
        for (int i = 0; i < block.getPositionCount(); i++) {
            found.add(block.isNull(i) ? "null" : text(table, block, i));
        }
        return found;
    }

    private static String text(Type type, Block block, int position)
    {
        return switch (type) {
            case VarcharType text -> text.getSlice(block, position).toStringUtf8();
            case DecimalType decimal -> Decimals.readBigDecimal(decimal, block, position).toString();
            case Type real when real == REAL -> String.valueOf(REAL.getFloat(block, position));
            case Type wide when wide == DOUBLE -> String.valueOf(DOUBLE.getDouble(block, position));
            default -> String.valueOf(type.getLong(block, position));
        };
    }

    private static ReadField field(PrimitiveType stored, Type table)
    {
        return ReadField.of("c", leaf(stored, table));
    }

    private static PrimitiveField leaf(PrimitiveType stored, Type table)
    {
        return new PrimitiveField(table, false, new ColumnDescriptor(new String[] {"c"}, stored, 0, 1), 0);
    }

    private static Block numbers(Type type, Long... values)
    {
        BlockBuilder into = type.createBlockBuilder(null, values.length);
        for (Long value : values) {
            if (value == null) {
                into.appendNull();
            }
            else {
                type.writeLong(into, value);
            }
        }
        return into.build();
    }
}
