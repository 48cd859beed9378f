package io.skipbridge.trino.read.page;

import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.ByteArrayBlock;
import io.trino.spi.block.DictionaryBlock;
import io.trino.spi.block.Fixed12Block;
import io.trino.spi.block.Int128ArrayBlock;
import io.trino.spi.block.IntArrayBlock;
import io.trino.spi.block.LongArrayBlock;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.block.ShortArrayBlock;
import io.trino.spi.block.ValueBlock;
import io.trino.spi.block.VariableWidthBlock;
import io.trino.spi.type.Type;

import java.util.List;

/**
 * Joins the blocks of one column into a single block.
 *
 * <p>Dictionaries of texts stay dictionaries, one behind the other, while that is smaller than the values; everything else becomes plain values.
 */
final class BlockJoiner
{
    private BlockJoiner() {}

    static Block join(Type type, List<Block> blocks, int positions)
    {
        if (blocks.size() == 1) {
            return blocks.getFirst();
        }
        Block single = oneValue(blocks, positions);
        if (single != null) {
            return single;
        }
        return switch (blocks.getFirst().getUnderlyingValueBlock()) {
            case LongArrayBlock _ when all(blocks, LongArrayBlock.class) -> longs(blocks, positions);
            case IntArrayBlock _ when all(blocks, IntArrayBlock.class) -> ints(blocks, positions);
            case ShortArrayBlock _ when all(blocks, ShortArrayBlock.class) -> shorts(blocks, positions);
            case ByteArrayBlock _ when all(blocks, ByteArrayBlock.class) -> bytes(blocks, positions);
            case Int128ArrayBlock _ when all(blocks, Int128ArrayBlock.class) -> int128s(blocks, positions);
            case Fixed12Block _ when all(blocks, Fixed12Block.class) -> fixed12s(blocks, positions);
            case VariableWidthBlock _ when all(blocks, VariableWidthBlock.class) -> texts(blocks, positions);
            default -> anything(type, blocks, positions);
        };
    }

    private static boolean all(List<Block> blocks, Class<? extends ValueBlock> type)
    {
        for (Block block : blocks) {
            if (!type.isInstance(block.getUnderlyingValueBlock())) {
                return false;
            }
        }
        return true;
    }

    /** Repetitions of the very same value block stay a repetition. */
    private static Block oneValue(List<Block> blocks, int positions)
    {
        ValueBlock value = null;
        for (Block block : blocks) {
            if (!(block instanceof RunLengthEncodedBlock repeated) || (value != null && value != repeated.getValue())) {
                return null;
            }
            value = repeated.getValue();
        }
        return RunLengthEncodedBlock.create(value, positions);
    }

    private static Block longs(List<Block> blocks, int positions)
    {
        long[] values = new long[positions];
        boolean[] nulls = nulls(blocks, positions);
        int next = 0;
        for (Block block : blocks) {
            LongArrayBlock source = (LongArrayBlock) block.getUnderlyingValueBlock();
            int[] ids = ids(block);
            int offset = offset(block);
            for (int i = 0; i < block.getPositionCount(); i++) {
                values[next++] = source.getLong(position(ids, offset, i));
            }
        }
        return Blocks.longs(positions, nulls, values);
    }

    private static Block ints(List<Block> blocks, int positions)
    {
        int[] values = new int[positions];
        boolean[] nulls = nulls(blocks, positions);
        int next = 0;
        for (Block block : blocks) {
            IntArrayBlock source = (IntArrayBlock) block.getUnderlyingValueBlock();
            int[] ids = ids(block);
            int offset = offset(block);
            for (int i = 0; i < block.getPositionCount(); i++) {
                values[next++] = source.getInt(position(ids, offset, i));
            }
        }
        return Blocks.ints(positions, nulls, values);
    }

    private static Block shorts(List<Block> blocks, int positions)
    {
        short[] values = new short[positions];
        boolean[] nulls = nulls(blocks, positions);
        int next = 0;
        for (Block block : blocks) {
            ShortArrayBlock source = (ShortArrayBlock) block.getUnderlyingValueBlock();
            for (int i = 0; i < block.getPositionCount(); i++) {
                values[next++] = source.getShort(block.getUnderlyingValuePosition(i));
            }
        }
        return Blocks.shorts(positions, nulls, values);
    }

    private static Block bytes(List<Block> blocks, int positions)
    {
        byte[] values = new byte[positions];
        boolean[] nulls = nulls(blocks, positions);
        int next = 0;
        for (Block block : blocks) {
            ByteArrayBlock source = (ByteArrayBlock) block.getUnderlyingValueBlock();
            for (int i = 0; i < block.getPositionCount(); i++) {
                values[next++] = source.getByte(block.getUnderlyingValuePosition(i));
            }
        }
        return Blocks.bytes(positions, nulls, values);
    }

    private static Block int128s(List<Block> blocks, int positions)
    {
        long[] values = new long[2 * positions];
        boolean[] nulls = nulls(blocks, positions);
        int next = 0;
        for (Block block : blocks) {
            Int128ArrayBlock source = (Int128ArrayBlock) block.getUnderlyingValueBlock();
            for (int i = 0; i < block.getPositionCount(); i++) {
                int position = block.getUnderlyingValuePosition(i);
                values[next++] = source.getInt128High(position);
                values[next++] = source.getInt128Low(position);
            }
        }
        return Blocks.int128s(positions, nulls, values);
    }

    private static Block fixed12s(List<Block> blocks, int positions)
    {
        int[] values = new int[3 * positions];
        boolean[] nulls = nulls(blocks, positions);
        int next = 0;
        for (Block block : blocks) {
            Fixed12Block source = (Fixed12Block) block.getUnderlyingValueBlock();
            for (int i = 0; i < block.getPositionCount(); i++) {
                int position = block.getUnderlyingValuePosition(i);
                Fixed12Block.encodeFixed12(source.getFixed12First(position), source.getFixed12Second(position), values, next++);
            }
        }
        return Blocks.fixed12s(positions, nulls, values);
    }

    private static Block texts(List<Block> blocks, int positions)
    {
        int dictionaries = 0;
        for (Block block : blocks) {
            dictionaries += block.getUnderlyingValueBlock().getPositionCount();
        }
        if (dictionaries > positions / 2) {
            return plainTexts(blocks, positions);
        }
        int[] ids = new int[positions];
        int next = 0;
        int first = 0;
        for (Block block : blocks) {
            int[] blockIds = ids(block);
            int offset = offset(block);
            for (int i = 0; i < block.getPositionCount(); i++) {
                ids[next++] = first + position(blockIds, offset, i);
            }
            first += block.getUnderlyingValueBlock().getPositionCount();
        }
        List<Block> values = blocks.stream().<Block>map(Block::getUnderlyingValueBlock).toList();
        return DictionaryBlock.create(positions, plainTexts(values, dictionaries), ids);
    }

    private static Block plainTexts(List<Block> blocks, int positions)
    {
        boolean[] nulls = nulls(blocks, positions);
        int[] offsets = new int[positions + 1];
        int next = 0;
        int length = 0;
        for (Block block : blocks) {
            VariableWidthBlock source = (VariableWidthBlock) block.getUnderlyingValueBlock();
            for (int i = 0; i < block.getPositionCount(); i++) {
                length = Math.addExact(length, source.getSliceLength(block.getUnderlyingValuePosition(i)));
                offsets[++next] = length;
            }
        }
        byte[] bytes = new byte[length];
        next = 0;
        for (Block block : blocks) {
            VariableWidthBlock source = (VariableWidthBlock) block.getUnderlyingValueBlock();
            if (block == source && block.getPositionCount() > 0) {
                int count = block.getPositionCount();
                source.getRawSlice().getBytes(source.getRawSliceOffset(0), bytes, offsets[next], offsets[next + count] - offsets[next]);
                next += count;
            }
            else {
                for (int i = 0; i < block.getPositionCount(); i++) {
                    int position = block.getUnderlyingValuePosition(i);
                    source.getRawSlice().getBytes(source.getRawSliceOffset(position), bytes, offsets[next], source.getSliceLength(position));
                    next++;
                }
            }
        }
        return Blocks.texts(positions, nulls, bytes, offsets);
    }

    private static Block anything(Type type, List<Block> blocks, int positions)
    {
        BlockBuilder builder = type.createBlockBuilder(null, positions);
        for (Block block : blocks) {
            ValueBlock source = block.getUnderlyingValueBlock();
            if (block == source) {
                builder.appendRange(source, 0, block.getPositionCount());
            }
            else {
                for (int i = 0; i < block.getPositionCount(); i++) {
                    builder.append(source, block.getUnderlyingValuePosition(i));
                }
            }
        }
        return builder.build();
    }

    private static boolean[] nulls(List<Block> blocks, int positions)
    {
        boolean[] nulls = null;
        int next = 0;
        for (Block block : blocks) {
            if (block.mayHaveNull()) {
                nulls = nulls == null ? new boolean[positions] : nulls;
                for (int i = 0; i < block.getPositionCount(); i++) {
                    nulls[next + i] = block.isNull(i);
                }
            }
            next += block.getPositionCount();
        }
        return nulls;
    }

    private static int[] ids(Block block)
    {
        return switch (block) {
            case DictionaryBlock dictionary -> dictionary.getRawIds();
            case RunLengthEncodedBlock repeated -> new int[repeated.getPositionCount()];
            default -> null;
        };
    }

    private static int offset(Block block)
    {
        return block instanceof DictionaryBlock dictionary ? dictionary.getRawIdsOffset() : 0;
    }

    private static int position(int[] ids, int offset, int i)
    {
        return ids == null ? i : ids[offset + i];
    }
}
