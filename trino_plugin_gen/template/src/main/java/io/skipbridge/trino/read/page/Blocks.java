package io.skipbridge.trino.read.page;

import io.airlift.slice.Slices;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.ByteArrayBlock;
import io.trino.spi.block.Fixed12Block;
import io.trino.spi.block.Int128ArrayBlock;
import io.trino.spi.block.IntArrayBlock;
import io.trino.spi.block.LongArrayBlock;
import io.trino.spi.block.ShortArrayBlock;
import io.trino.spi.block.VariableWidthBlock;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeUtils;

import java.util.Optional;

/** Makes blocks from arrays; {@code nulls} is null where no value is. How a block takes its nulls differs between families of releases. */
final class Blocks
{
    private Blocks() {}

    /** A block of one position; a null value is NULL. */
    static Block single(Type type, Object value)
    {
        BlockBuilder builder = type.createBlockBuilder(null, 1);
        TypeUtils.writeNativeValue(type, builder, value);
        return builder.build();
    }

    static Block longs(int positions, boolean[] nulls, long[] values)
    {
        return new LongArrayBlock(positions, Optional.ofNullable(nulls), values);
    }

    static Block ints(int positions, boolean[] nulls, int[] values)
    {
        return new IntArrayBlock(positions, Optional.ofNullable(nulls), values);
    }

    static Block shorts(int positions, boolean[] nulls, short[] values)
    {
        return new ShortArrayBlock(positions, Optional.ofNullable(nulls), values);
    }

    static Block bytes(int positions, boolean[] nulls, byte[] values)
    {
        return new ByteArrayBlock(positions, Optional.ofNullable(nulls), values);
    }

    static Block int128s(int positions, boolean[] nulls, long[] values)
    {
        return new Int128ArrayBlock(positions, Optional.ofNullable(nulls), values);
    }

    static Block fixed12s(int positions, boolean[] nulls, int[] values)
    {
        return new Fixed12Block(positions, Optional.ofNullable(nulls), values);
    }

    static Block texts(int positions, boolean[] nulls, byte[] bytes, int[] offsets)
    {
        return new VariableWidthBlock(positions, Slices.wrappedBuffer(bytes), offsets, Optional.ofNullable(nulls));
    }
}
