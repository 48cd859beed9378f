package io.skipbridge.trino.read;

import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.connector.SourcePage;

import java.util.function.ObjLongConsumer;

/** A reader's page with its columns in the scan's order and the constants beside them; columns are read when they are asked for. */
final class MappedSourcePage
        implements SourcePage
{
    private static final int SHALLOW_BYTES = 48;

    private final SourcePage source;
    private final int[] columnOfChannel;
    private final Block[] constants;

    /** {@code columnOfChannel[i]} is a column of the page, or -1 where {@code constants[i]}, of one position, is repeated. */
    MappedSourcePage(SourcePage source, int[] columnOfChannel, Block[] constants)
    {
        this.source = source;
        this.columnOfChannel = columnOfChannel;
        this.constants = constants;
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
        return column >= 0 ? source.getBlock(column) : RunLengthEncodedBlock.create(constants[channel], source.getPositionCount());
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
