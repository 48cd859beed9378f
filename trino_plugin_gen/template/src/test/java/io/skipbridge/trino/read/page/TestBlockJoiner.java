package io.skipbridge.trino.read.page;

import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.DictionaryBlock;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.LongTimestamp;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeUtils;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

/** Joined blocks hold the values of their parts in order, for every kind of value and every form of block. */
class TestBlockJoiner
{
    private static final DecimalType LONG_DECIMAL = DecimalType.createDecimalType(38, 2);
    private static final TimestampType LONG_TIMESTAMP = TimestampType.createTimestampType(9);
    private static final ArrayType ARRAY = new ArrayType(BIGINT);

    @Test
    void joinsEveryKindOfBlock()
    {
        Random random = new Random(1);
        Map<Type, List<Object>> samples = new LinkedHashMap<>();
        samples.put(BIGINT, List.of(1L, -5L, Long.MAX_VALUE));
        samples.put(INTEGER, List.of(1L, -5L));
        samples.put(SMALLINT, List.of(1L, -5L));
        samples.put(BOOLEAN, List.of(true, false));
        samples.put(VARCHAR, List.of(utf8Slice(""), utf8Slice("é"), utf8Slice("long enough to differ")));
        samples.put(LONG_DECIMAL, List.of(Int128.valueOf(7), Int128.valueOf(-1, 3)));
        samples.put(LONG_TIMESTAMP, List.of(new LongTimestamp(5, 1000), new LongTimestamp(-5, 0)));
        samples.put(ARRAY, List.of(TypeUtils.writeNativeValue(BIGINT, 3L)));
        for (Map.Entry<Type, List<Object>> sample : samples.entrySet()) {
            for (int round = 0; round < 50; round++) {
                List<Block> blocks = new ArrayList<>();
                List<Object> expected = new ArrayList<>();
                for (int i = 0; i < 1 + random.nextInt(6); i++) {
                    Block block = block(sample.getKey(), sample.getValue(), random);
                    blocks.add(block);
                    expected.addAll(values(sample.getKey(), block));
                }
                Block joined = BlockJoiner.join(sample.getKey(), blocks, expected.size());
                assertEquals(expected, values(sample.getKey(), joined), sample.getKey().toString());
            }
        }
    }

    @Test
    void keepsDictionariesOfTextAndRepetitions()
    {
        BlockBuilder builder = VARCHAR.createBlockBuilder(null, 2);
        VARCHAR.writeSlice(builder, utf8Slice("a"));
        VARCHAR.writeSlice(builder, utf8Slice("b"));
        Block dictionary = builder.build();
        Block ids = DictionaryBlock.create(6, dictionary, new int[] {0, 1, 0, 1, 1, 0});
        assertInstanceOf(DictionaryBlock.class, BlockJoiner.join(VARCHAR, List.of(ids, ids), 12));

        Block one = TypeUtils.writeNativeValue(BIGINT, 1L);
        Block joined = BlockJoiner.join(BIGINT, List.of(RunLengthEncodedBlock.create(one, 3), RunLengthEncodedBlock.create(one, 4)), 7);
        assertInstanceOf(RunLengthEncodedBlock.class, joined);
    }

    @Test
    void joinsPagesUpToItsTarget()
    {
        PageJoiner joiner = new PageJoiner(List.of(BIGINT));
        int added = 0;
        while (!joiner.isFull()) {
            joiner.add(new Block[] {TypeUtils.writeNativeValue(BIGINT, (long) added)}, 1);
            added++;
        }
        Page page = joiner.join();
        assertEquals(PageJoiner.TARGET_POSITIONS, page.getPositionCount());
        for (int i = 0; i < added; i++) {
            assertEquals(i, BIGINT.getLong(page.getBlock(0), i));
        }
        assertEquals(0, joiner.bytes());
    }

    private static Block block(Type type, List<Object> samples, Random random)
    {
        int count = random.nextInt(20) + 2;
        BlockBuilder builder = type.createBlockBuilder(null, count);
        for (int i = 0; i < count; i++) {
            Object value = random.nextInt(4) == 0 ? null : samples.get(random.nextInt(samples.size()));
            TypeUtils.writeNativeValue(type, builder, value);
        }
        Block plain = builder.build();
        return switch (random.nextInt(4)) {
            case 0 -> RunLengthEncodedBlock.create(plain.getSingleValueBlock(0), count);
            case 1 -> DictionaryBlock.create(count * 3, plain, random.ints(count * 3L, 0, count).toArray());
            case 2 -> plain.getRegion(1, count - 1);
            default -> plain;
        };
    }

    private static List<Object> values(Type type, Block block)
    {
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < block.getPositionCount(); i++) {
            Object value = TypeUtils.readNativeValue(type, block, i);
            values.add(value instanceof Block array ? values(BIGINT, array) : value);
        }
        return values;
    }
}
