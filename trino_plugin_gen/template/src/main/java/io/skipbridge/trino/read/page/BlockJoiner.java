package io.skipbridge.trino.read.page;

import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.DictionaryBlock;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.block.ValueBlock;
import io.trino.spi.block.VariableWidthBlock;
import io.trino.spi.type.Type;

import java.util.List;

/**
 * Joins the blocks of one column into a single block.
 *
 * <p>Blocks of text become one dictionary if their dictionaries together are small: the engine groups by them several times faster than by plain
 * values. Repetitions of one value stay a repetition. All other blocks become plain values.
 */
final class BlockJoiner
{
    private BlockJoiner() {}

    static Block join(Type type, List<Block> blocks, int positions)
    {
        if (blocks.size() == 1) {
            return blocks.getFirst();
        }
        if (repeatOneValue(blocks)) {
            return RunLengthEncodedBlock.create(blocks.getFirst().getUnderlyingValueBlock(), positions);
        }
        List<Block> values = blocks.stream().<Block>map(Block::getUnderlyingValueBlock).toList();
        int distinct = values.stream().mapToInt(Block::getPositionCount).sum();
        boolean dictionary = values.getFirst() instanceof VariableWidthBlock && distinct <= positions / 2;
        return dictionary ? DictionaryBlock.create(positions, append(type, values, distinct), ids(blocks, positions)) : append(type, blocks, positions);
    }

    /** Whether all blocks repeat the very same value block. */
    private static boolean repeatOneValue(List<Block> blocks)
    {
        ValueBlock value = blocks.getFirst().getUnderlyingValueBlock();
        return blocks.stream().allMatch(block -> block instanceof RunLengthEncodedBlock && block.getUnderlyingValueBlock() == value);
    }

    private static int[] ids(List<Block> blocks, int positions)
    {
        int[] ids = new int[positions];
        int next = 0;
        int first = 0;
        for (Block block : blocks) {
            for (int i = 0; i < block.getPositionCount(); i++) {
                ids[next++] = first + block.getUnderlyingValuePosition(i);
            }
            first += block.getUnderlyingValueBlock().getPositionCount();
        }
        return ids;
    }

    private static Block append(Type type, List<Block> blocks, int positions)
    {
        BlockBuilder builder = type.createBlockBuilder(null, positions);
        for (Block block : blocks) {
            switch (block) {
                case DictionaryBlock dictionary ->
                        builder.appendPositions(dictionary.getDictionary(), dictionary.getRawIds(), dictionary.getRawIdsOffset(), dictionary.getPositionCount());
                case RunLengthEncodedBlock repeated -> builder.appendRepeated(repeated.getValue(), 0, repeated.getPositionCount());
                case ValueBlock plain -> builder.appendRange(plain, 0, plain.getPositionCount());
            }
        }
        return builder.build();
    }
}
