package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.DictionaryBlock;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.connector.FixedPageSource;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.predicate.ValueSet;
import io.trino.spi.type.Type;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.TypeUtils.readNativeValue;
import static io.trino.spi.type.TypeUtils.writeNativeValue;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestDynamicFilterPageSource
{
    private static final List<Type> TYPES = List.of(BIGINT, INTEGER, SMALLINT, TINYINT, DATE);
    private static final BridgeColumnHandle X = column("x", BIGINT);
    private static final BridgeColumnHandle Y = column("y", BIGINT);

    @Test
    void theLongDomainIsTheDomain()
    {
        Random random = new Random(14);
        int removed = 0;
        for (int round = 0; round < 2_000; round++) {
            Type type = TYPES.get(random.nextInt(TYPES.size()));
            Domain domain = randomDomain(random, type);
            LongDomain tested = LongDomain.of(type, domain).orElseThrow();
            for (int page = 0; page < 3; page++) {
                Block block = randomBlock(random, type, 1 + random.nextInt(40));
                int[] positions = new int[block.getPositionCount()];
                int count = 0;
                List<Integer> expected = new ArrayList<>();
                for (int i = 0; i < positions.length; i++) {
                    if (random.nextInt(5) > 0) {
                        positions[count++] = i;
                        if (domain.includesNullableValue(readNativeValue(type, block, i))) {
                            expected.add(i);
                        }
                    }
                }
                int kept = tested.keep(block, positions, count);
                assertEquals(expected, Arrays.stream(positions, 0, kept).boxed().toList(), () -> "%s of %s".formatted(domain, type));
                removed += count - kept;
            }
        }
        assertTrue(removed > 10_000);
        assertTrue(LongDomain.of(VARCHAR, Domain.notNull(VARCHAR)).isEmpty());
    }

    @Test
    void removesRowsOnceTheFilterIsKnown()
    {
        AtomicReference<TupleDomain<BridgeColumnHandle>> filter = new AtomicReference<>(TupleDomain.all());
        Page page = new Page(longs(10L, 11L, 12L, null), longs(0L, 1L, 2L, 3L));
        DynamicFilterPageSource source = source(filter, page, page, page);
        assertEquals(Arrays.asList(10L, 11L, 12L, null), next(source));
        filter.set(only(X, Domain.multipleValues(BIGINT, List.of(11L, 12L, 40L))));
        assertEquals(List.of(11L, 12L), next(source));
        filter.set(filter.get().intersect(only(Y, Domain.singleValue(BIGINT, 2L))));
        assertEquals(List.of(12L), next(source));
        assertTrue(source.isFinished());
        assertEquals(12, source.getCompletedPositions().orElseThrow());
    }

    @Test
    void appliesWhatIsKnownAtTheStartButNotTheScansOwnPredicate()
    {
        TupleDomain<BridgeColumnHandle> own = only(X, Domain.singleValue(BIGINT, 11L));
        AtomicReference<TupleDomain<BridgeColumnHandle>> filter = new AtomicReference<>(own.intersect(only(Y, Domain.multipleValues(BIGINT, List.of(0L, 1L)))));
        Page page = new Page(longs(10L, 11L, 11L), longs(0L, 1L, 2L));
        DynamicFilterPageSource source = new DynamicFilterPageSource(new Counted(List.of(page, page)), List.of(X, Y), own, filter::get);
        assertEquals(List.of(10L, 11L), next(source));
        filter.set(own.intersect(only(Y, Domain.singleValue(BIGINT, 0L))));
        assertEquals(List.of(10L), next(source));
    }

    @Test
    void endsWhenNothingMatches()
    {
        AtomicReference<TupleDomain<BridgeColumnHandle>> filter = new AtomicReference<>(TupleDomain.all());
        Page page = new Page(longs(1L), longs(1L));
        DynamicFilterPageSource source = source(filter, page, page);
        assertEquals(List.of(1L), next(source));
        filter.set(TupleDomain.none());
        assertNull(source.getNextSourcePage());
        assertTrue(source.isFinished());
    }

    @Test
    void aFilterThatKeepsNearlyAllRowsIsDropped()
    {
        AtomicReference<TupleDomain<BridgeColumnHandle>> filter = new AtomicReference<>(TupleDomain.all());
        Long[] values = new Long[5_000];
        Arrays.setAll(values, i -> (long) i);
        Page page = new Page(longs(values), longs(values));
        DynamicFilterPageSource source = source(filter, page, page, page);
        next(source);
        filter.set(only(X, Domain.create(ValueSet.ofRanges(Range.greaterThan(BIGINT, 99L)), false)));
        assertEquals(4_900, next(source).size());
        assertEquals(5_000, next(source).size());
    }

    private static DynamicFilterPageSource source(AtomicReference<TupleDomain<BridgeColumnHandle>> filter, Page... pages)
    {
        return new DynamicFilterPageSource(new Counted(List.of(pages)), List.of(X, Y), filter.get(), filter::get);
    }

    /** A source that counts its rows as readers of files do. */
    private static final class Counted
            extends SplitPageSource
    {
        private final FixedPageSource pages;

        private Counted(List<Page> pages)
        {
            this.pages = new FixedPageSource(pages);
        }

        @Override
        SourcePage nextPage()
        {
            SourcePage page = pages.getNextSourcePage();
            if (pages.isFinished()) {
                end();
            }
            return page;
        }

        @Override
        RuntimeException failure(Throwable problem)
        {
            return new IllegalStateException(problem);
        }

        @Override
        void closeFiles()
                throws IOException
        {
            pages.close();
        }

        @Override
        public long getMemoryUsage()
        {
            return pages.getMemoryUsage();
        }
    }

    private static List<Long> next(DynamicFilterPageSource source)
    {
        SourcePage page = source.getNextSourcePage();
        List<Long> found = new ArrayList<>();
        for (int i = 0; i < page.getPositionCount(); i++) {
            found.add((Long) readNativeValue(BIGINT, page.getBlock(0), i));
        }
        return found;
    }

    private static TupleDomain<BridgeColumnHandle> only(BridgeColumnHandle column, Domain domain)
    {
        return TupleDomain.withColumnDomains(Map.of(column, domain));
    }

    private static Domain randomDomain(Random random, Type type)
    {
        boolean nulls = random.nextBoolean();
        List<Range> ranges = new ArrayList<>();
        for (int i = random.nextInt(6); i >= 0; i--) {
            long low = value(random, type);
            long high = Math.max(low, value(random, type));
            ranges.add(switch (random.nextInt(6)) {
                case 0 -> low < high ? Range.range(type, low, random.nextBoolean(), high, random.nextBoolean()) : Range.equal(type, low);
                case 1 -> random.nextInt(4) == 0 ? Range.greaterThan(type, low) : Range.equal(type, low);
                case 2 -> random.nextInt(4) == 0 ? Range.lessThanOrEqual(type, low) : Range.equal(type, low);
                default -> Range.equal(type, low);
            });
        }
        ValueSet values = random.nextInt(10) == 0 ? ValueSet.none(type) : ValueSet.copyOfRanges(type, ranges);
        return Domain.create(random.nextInt(8) == 0 ? values.complement() : values, nulls);
    }

    private static long value(Random random, Type type)
    {
        if (random.nextInt(10) == 0) {
            boolean most = random.nextBoolean();
            if (type == TINYINT) {
                return most ? Byte.MAX_VALUE : Byte.MIN_VALUE;
            }
            if (type == SMALLINT) {
                return most ? Short.MAX_VALUE : Short.MIN_VALUE;
            }
            if (type == BIGINT) {
                return most ? Long.MAX_VALUE : Long.MIN_VALUE;
            }
            return most ? Integer.MAX_VALUE : Integer.MIN_VALUE;
        }
        return random.nextInt(20) - 10;
    }

    private static Block randomBlock(Random random, Type type, int rows)
    {
        if (random.nextInt(4) == 0) {
            return RunLengthEncodedBlock.create(writeNativeValue(type, random.nextInt(3) == 0 ? null : value(random, type)), rows);
        }
        boolean dictionary = random.nextBoolean();
        int stored = dictionary ? 2 + random.nextInt(9) : rows;
        BlockBuilder builder = type.createBlockBuilder(null, stored);
        for (int i = 0; i < stored; i++) {
            if (random.nextInt(6) == 0) {
                builder.appendNull();
            }
            else {
                type.writeLong(builder, value(random, type));
            }
        }
        int[] ids = random.ints(rows, 0, stored).toArray();
        return dictionary ? DictionaryBlock.create(rows, builder.build(), ids) : builder.build();
    }

    private static Block longs(Long... values)
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

    private static BridgeColumnHandle column(String name, Type type)
    {
        return new BridgeColumnHandle(name, type, ColumnKind.DATA, 0);
    }
}
