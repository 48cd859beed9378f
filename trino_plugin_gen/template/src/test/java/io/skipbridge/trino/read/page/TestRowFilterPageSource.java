package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.connector.FixedPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.predicate.ValueSet;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import static io.trino.spi.type.BigintType.BIGINT;
import static org.junit.jupiter.api.Assertions.assertEquals;

class TestRowFilterPageSource
{
    private static final BridgeColumnHandle X = new BridgeColumnHandle("x", BIGINT, ColumnKind.DATA, 0);
    private static final BridgeColumnHandle Y = new BridgeColumnHandle("y", BIGINT, ColumnKind.DATA, 0);

    @Test
    void removesRowsAndThenTheFiltersOwnColumns()
    {
        Domain atLeastTwo = Domain.create(ValueSet.ofRanges(Range.greaterThanOrEqual(BIGINT, 2L)), false);
        assertEquals(List.of(12L, 13L, 20L), rows(1, Map.of(Y, atLeastTwo)));
        assertEquals(List.of(12L, 20L), rows(1, Map.of(Y, atLeastTwo, X, Domain.create(ValueSet.of(BIGINT, 13L).complement(), false))));
        assertEquals(Arrays.asList(10L, null), rows(1, Map.of(Y, Domain.onlyNull(BIGINT))));
        assertEquals(List.of(), rows(1, Map.of(Y, Domain.singleValue(BIGINT, 99L))));
        assertEquals(Arrays.asList(10L, 11L, 12L, 13L, 20L, null), rows(1, Map.of(Y, Domain.create(ValueSet.ofRanges(Range.lessThan(BIGINT, 99L)), true))));
    }

    @Test
    void countsRowsOfAScanWithoutColumns()
    {
        FixedPageSource pages = new FixedPageSource(List.of(new Page(block(1L, 2L, null, 3L))));
        RowFilterPageSource source = new RowFilterPageSource(pages, List.of(Y), 0, TupleDomain.withColumnDomains(Map.of(Y, Domain.notNull(BIGINT))));
        SourcePage page = source.getNextSourcePage();
        assertEquals(3, page.getPositionCount());
        assertEquals(0, page.getChannelCount());
    }

    private static List<Long> rows(int width, Map<BridgeColumnHandle, Domain> filter)
    {
        FixedPageSource pages = new FixedPageSource(List.of(
                new Page(block(10L, 11L, 12L, 13L), block(null, 1L, 2L, 3L)),
                new Page(block(20L, null), block(7L, null))));
        List<Long> found = new ArrayList<>();
        try (RowFilterPageSource source = new RowFilterPageSource(pages, List.of(X, Y), width, TupleDomain.withColumnDomains(filter))) {
            while (!source.isFinished()) {
                SourcePage page = source.getNextSourcePage();
                if (page == null) {
                    continue;
                }
                assertEquals(width, page.getChannelCount());
                for (int i = 0; i < page.getPositionCount(); i++) {
                    found.add(page.getBlock(0).isNull(i) ? null : BIGINT.getLong(page.getBlock(0), i));
                }
            }
        }
        catch (IOException e) {
            throw new AssertionError(e);
        }
        return found;
    }

    private static Block block(Long... values)
    {
        BlockBuilder builder = BIGINT.createFixedSizeBlockBuilder(values.length);
        for (Long value : values) {
            if (value == null) {
                builder.appendNull();
            }
            else {
                BIGINT.writeLong(builder, value);
            }
        }
        return builder.build();
    }
}
