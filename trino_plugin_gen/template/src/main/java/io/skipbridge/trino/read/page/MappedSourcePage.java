package io.skipbridge.trino.read.page;

import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.Int128ArrayBlockBuilder;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.connector.SourcePage;

import java.util.function.IntPredicate;
import java.util.function.ObjLongConsumer;

import static io.trino.spi.type.BigintType.BIGINT;

/** A reader's page with its columns in the scan's order, and with constants. Columns are read on demand. */
final class MappedSourcePage
        implements SourcePage
{
    private static final int SHALLOW_BYTES = 48;

    private final SourcePage source;
    private final int[] columnOfChannel;
    private final Block[] constants;
    private final IntPredicate unsigned;

    /**
     * {@code columnOfChannel[i]} is a column of the page, or -1 where {@code constants[i]}, a block of one position, is repeated.
     *
     * @param unsigned channels of decimals whose column holds the bits of unsigned numbers
     */
    MappedSourcePage(SourcePage source, int[] columnOfChannel, Block[] constants, IntPredicate unsigned)
    {
        this.source = source;
        this.columnOfChannel = columnOfChannel;
        this.constants = constants;
        this.unsigned = unsigned;
    }

    @Override
    public int getPositionCount()
    {
        return source.getPositionCount();
    }

    @Override
    public long getSizeInBytes()
    {
        return source.getSizeInBytes();
    }

    @Override
    public long getRetainedSizeInBytes()
    {
        return SHALLOW_BYTES + source.getRetainedSizeInBytes();
    }

    @Override
    public void retainedBytesForEachPart(ObjLongConsumer<Object> consumer)
    {
        source.retainedBytesForEachPart(consumer);
    }

    @Override
    public int getChannelCount()
    {
        return columnOfChannel.length;
    }

    @Override
    public Block getBlock(int channel)
    {
        int column = columnOfChannel[channel];
        if (column < 0) {
            return RunLengthEncodedBlock.create(constants[channel], source.getPositionCount());
        }
        Block block = source.getBlock(column);
        return unsigned.test(channel) ? withoutSign(block) : block;
    }

    private static Block withoutSign(Block block)
    {
        Int128ArrayBlockBuilder builder = new Int128ArrayBlockBuilder(null, block.getPositionCount());
        for (int i = 0; i < block.getPositionCount(); i++) {
            if (block.isNull(i)) {
                builder.appendNull();
            }
            else {
                builder.writeInt128(0, BIGINT.getLong(block, i));
            }
        }
        return builder.build();
    }

    @Override
    public Page getPage()
    {
        Block[] blocks = new Block[columnOfChannel.length];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = getBlock(i);
        }
        return new Page(getPositionCount(), blocks);
    }

    @Override
    public void selectPositions(int[] positions, int offset, int size)
    {
        source.selectPositions(positions, offset, size);
    }
}
