package io.skipbridge.trino.read.block;

import io.trino.spi.block.Block;
import io.trino.spi.block.ColumnarArray;
import io.trino.spi.block.ColumnarMap;
import io.trino.spi.block.RowBlock;
import io.trino.spi.type.MapType;

import java.util.List;
import java.util.function.UnaryOperator;

/** Changes what lists, maps and rows hold, and keeps their shape. */
public final class NestedValues
{
    private NestedValues() {}

    public static Block elements(Block block, UnaryOperator<Block> change)
    {
        ColumnarArray lists = ColumnarArray.toColumnarArray(block);
        int count = lists.getPositionCount();
        int[] offsets = new int[count + 1];
        boolean[] nulls = new boolean[count];
        for (int i = 0; i < count; i++) {
            nulls[i] = lists.isNull(i);
            offsets[i + 1] = offsets[i] + (nulls[i] ? 0 : lists.getLength(i));
        }
        return NestedBlocks.lists(nulls, offsets, change.apply(lists.getElementsBlock()));
    }

    /** @param type of the maps that are made */
    public static Block entries(Block block, MapType type, UnaryOperator<Block> keys, UnaryOperator<Block> values)
    {
        ColumnarMap maps = ColumnarMap.toColumnarMap(block);
        int count = maps.getPositionCount();
        int[] offsets = new int[count + 1];
        boolean[] nulls = new boolean[count];
        for (int i = 0; i < count; i++) {
            nulls[i] = maps.isNull(i);
            offsets[i + 1] = offsets[i] + (nulls[i] ? 0 : maps.getEntryCount(i));
        }
        return NestedBlocks.maps(type, nulls, offsets, keys.apply(maps.getKeysBlock()), values.apply(maps.getValuesBlock()));
    }

    /** @param change makes the fields, with a position for each row, of those that the rows hold */
    public static Block fields(Block block, UnaryOperator<List<Block>> change)
    {
        boolean[] nulls = new boolean[block.getPositionCount()];
        for (int i = 0; i < nulls.length; i++) {
            nulls[i] = block.isNull(i);
        }
        return NestedBlocks.rows(nulls, change.apply(RowBlock.getRowFieldsFromBlock(block)).toArray(Block[]::new));
    }
}
