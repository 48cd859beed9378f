package io.skipbridge.trino.read.block;

import io.trino.spi.block.ArrayBlock;
import io.trino.spi.block.Bitmap;
import io.trino.spi.block.Block;
import io.trino.spi.block.RowBlock;
import io.trino.spi.type.MapType;

import java.util.Optional;

/** Makes blocks of nested values, whose masks of NULL differ between families of releases. */
public final class NestedBlocks
{
    private NestedBlocks() {}

    /** @param nulls by list; @param offsets into the elements, one more than lists */
    public static Block lists(boolean[] nulls, int[] offsets, Block elements)
    {
        return ArrayBlock.fromElementBlock(nulls.length, valid(nulls), offsets, elements);
    }

    public static Block maps(MapType type, boolean[] nulls, int[] offsets, Block keys, Block values)
    {
        return type.createBlockFromKeyValue(valid(nulls), offsets, keys, values);
    }

    /** @param fields with a position for each row, the NULL ones too */
    public static Block rows(boolean[] nulls, Block[] fields)
    {
        return RowBlock.fromNotNullSuppressedFieldBlocks(nulls.length, valid(nulls), fields);
    }

    private static Optional<long[]> valid(boolean[] nulls)
    {
        long[] valid = Bitmap.allocateWords(nulls.length, true);
        for (int i = 0; i < nulls.length; i++) {
            if (nulls[i]) {
                Bitmap.clear(valid, 0, i);
            }
        }
        return Optional.of(valid);
    }
}
