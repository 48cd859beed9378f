package io.skipbridge.trino.read.page;

import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.connector.SourcePage;

import java.util.List;
import java.util.Optional;
import java.util.function.ObjLongConsumer;
import java.util.function.UnaryOperator;

/**
 * A reader's page with its columns in the scan's order and types, and with constants. Columns are read, and converted, on demand: the engine asks for them
 * after the page source gave the page, so the page itself turns a reader's exceptions into errors that name the file.
 */
public final class MappedSourcePage
        implements SourcePage
{
    private static final int SHALLOW_BYTES = 48;

    private final SourcePage source;
    private final int[] columnOfChannel;
    private final Block[] constants;
    private final List<Optional<UnaryOperator<Block>>> conversions;
    private final UnaryOperator<RuntimeException> failure;
    private final Block[] converted;

    /**
     * {@code columnOfChannel[i]} is a column of the page, or -1 where {@code constants[i]}, a block of one position, is repeated.
     *
     * @param conversions of each channel's column; empty where there is nothing to convert
     * @param failure what an exception of the reader tells of the page's file
     */
    public MappedSourcePage(
            SourcePage source,
            int[] columnOfChannel,
            Block[] constants,
            List<Optional<UnaryOperator<Block>>> conversions,
            UnaryOperator<RuntimeException> failure)
    {
        this.source = source;
        this.columnOfChannel = columnOfChannel;
        this.constants = constants;
        this.conversions = conversions;
        this.failure = failure;
        this.converted = new Block[columnOfChannel.length];
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
        try {
            if (conversions.get(channel).isEmpty()) {
                return source.getBlock(column);
            }
            if (converted[channel] == null) {
                converted[channel] = conversions.get(channel).get().apply(source.getBlock(column));
            }
            return converted[channel];
        }
        catch (RuntimeException e) {
            throw failure.apply(e);
        }
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
        for (int i = 0; i < converted.length; i++) {
            converted[i] = converted[i] == null ? null : converted[i].getPositions(positions, offset, size);
        }
        source.selectPositions(positions, offset, size);
    }
}
