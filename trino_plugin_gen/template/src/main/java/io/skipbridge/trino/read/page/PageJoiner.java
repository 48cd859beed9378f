package io.skipbridge.trino.read.page;

import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.type.Type;

import java.util.ArrayList;
import java.util.List;

/** Joins small pages into pages of a useful size. */
public final class PageJoiner
{
    public static final int TARGET_POSITIONS = 8_192;
    private static final long TARGET_BYTES = 4 << 20;

    private final List<Type> types;
    private final List<List<Block>> channels = new ArrayList<>();
    private int positions;
    private long bytes;

    public PageJoiner(List<Type> types)
    {
        this.types = types;
        types.forEach(_ -> channels.add(new ArrayList<>()));
    }

    public void add(Block[] blocks, int count)
    {
        for (int i = 0; i < blocks.length; i++) {
            channels.get(i).add(blocks[i]);
            bytes += blocks[i].getSizeInBytes();
        }
        positions += count;
    }

    public void add(SourcePage page)
    {
        Block[] blocks = new Block[page.getChannelCount()];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = page.getBlock(i);
        }
        add(blocks, page.getPositionCount());
    }

    public boolean isEmpty()
    {
        return positions == 0;
    }

    public boolean isFull()
    {
        return positions >= TARGET_POSITIONS || bytes >= TARGET_BYTES;
    }

    public long bytes()
    {
        return bytes;
    }

    public Page join()
    {
        Block[] joined = new Block[types.size()];
        for (int i = 0; i < joined.length; i++) {
            joined[i] = BlockJoiner.join(types.get(i), channels.get(i), positions);
            channels.get(i).clear();
        }
        Page page = new Page(positions, joined);
        positions = 0;
        bytes = 0;
        return page;
    }
}
