package io.skipbridge.trino.read.orc;

import io.trino.plugin.hive.coercions.TypeCoercer;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.util.List;
import java.util.Optional;
import java.util.function.ObjLongConsumer;

/** A reader's page with its columns in the table's types. A column is read, and coerced, on demand. */
public final class CoercedPage
        implements SourcePage
{
    private final SourcePage source;
    private final List<Optional<TypeCoercer<?, ?>>> coercers;
    private final Block[] coerced;

    public CoercedPage(SourcePage source, List<Optional<TypeCoercer<?, ?>>> coercers)
    {
        this.source = source;
        this.coercers = coercers;
        this.coerced = new Block[coercers.size()];
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
        return source.getRetainedSizeInBytes();
    }

    @Override
    public void retainedBytesForEachPart(ObjLongConsumer<Object> consumer)
    {
        source.retainedBytesForEachPart(consumer);
    }

    @Override
    public int getChannelCount()
    {
        return coerced.length;
    }

    @Override
    public Block getBlock(int channel)
    {
        if (coerced[channel] == null) {
            Block block = source.getBlock(channel);
            coerced[channel] = coercers.get(channel).map(coercer -> coercer.apply(block)).orElse(block);
        }
        return coerced[channel];
    }

    @Override
    public Page getPage()
    {
        Block[] blocks = new Block[coerced.length];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = getBlock(i);
        }
        return new Page(getPositionCount(), blocks);
    }

    @Override
    public void selectPositions(int[] positions, int offset, int size)
    {
        for (int i = 0; i < coerced.length; i++) {
            coerced[i] = coerced[i] == null ? null : coerced[i].getPositions(positions, offset, size);
        }
        source.selectPositions(positions, offset, size);
    }
}
