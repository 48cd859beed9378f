package io.skipbridge.trino.read.page;

import io.trino.spi.block.Block;
import io.trino.spi.block.DictionaryBlock;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.block.ValueBlock;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.type.Type;
import it.unimi.dsi.fastutil.longs.LongOpenHashSet;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TinyintType.TINYINT;

/** A domain of whole numbers or dates, for blocks of values. */
final class LongDomain
{
    private static final Set<Type> TYPES = Set.of(BIGINT, INTEGER, SMALLINT, TINYINT, DATE);

    private final Type type;
    private final boolean nulls;
    private final long[] lows;
    private final long[] highs;
    private final Optional<LongOpenHashSet> discrete;
    private Block dictionary;
    private boolean[] ofDictionary = {};

    private LongDomain(Type type, Domain domain)
    {
        this.type = type;
        this.nulls = domain.isNullAllowed();
        List<long[]> bounds = domain.getValues().getRanges().getOrderedRanges().stream().map(LongDomain::bounds).filter(range -> range[0] <= range[1]).toList();
        this.lows = bounds.stream().mapToLong(range -> range[0]).toArray();
        this.highs = bounds.stream().mapToLong(range -> range[1]).toArray();
        this.discrete = lows.length > 1 && domain.getValues().isDiscreteSet() ? Optional.of(new LongOpenHashSet(lows)) : Optional.empty();
    }

    /** The first and the last value of a range; the last is smaller if no whole number lies between its bounds. */
    private static long[] bounds(Range range)
    {
        long low = range.isLowUnbounded() ? Long.MIN_VALUE : (long) range.getLowBoundedValue();
        long high = range.isHighUnbounded() ? Long.MAX_VALUE : (long) range.getHighBoundedValue();
        boolean above = !range.isLowUnbounded() && !range.isLowInclusive();
        boolean below = !range.isHighUnbounded() && !range.isHighInclusive();
        if ((above && low == Long.MAX_VALUE) || (below && high == Long.MIN_VALUE)) {
            return new long[] {0, -1};
        }
        return new long[] {above ? low + 1 : low, below ? high - 1 : high};
    }

    /** Empty for other types. */
    static Optional<LongDomain> of(Type type, Domain domain)
    {
        return TYPES.contains(type) ? Optional.of(new LongDomain(type, domain)) : Optional.empty();
    }

    /** Moves the positions whose values the domain includes to the front, in their order. Returns their number. */
    int keep(Block block, int[] positions, int count)
    {
        return switch (block) {
            case RunLengthEncodedBlock repeated -> includes(repeated.getValue(), 0) ? count : 0;
            case DictionaryBlock ids -> keep(ids, ofDictionary(ids.getDictionary()), positions, count);
            case ValueBlock values -> keep(values, positions, count);
        };
    }

    private int keep(ValueBlock values, int[] positions, int count)
    {
        int kept = 0;
        for (int i = 0; i < count; i++) {
            int position = positions[i];
            if (includes(values, position)) {
                positions[kept++] = position;
            }
        }
        return kept;
    }

    private static int keep(DictionaryBlock ids, boolean[] included, int[] positions, int count)
    {
        int kept = 0;
        for (int i = 0; i < count; i++) {
            int position = positions[i];
            if (included[ids.getId(position)]) {
                positions[kept++] = position;
            }
        }
        return kept;
    }

    /** A reader's pages share one dictionary. */
    private boolean[] ofDictionary(ValueBlock values)
    {
        if (dictionary != values) {
            dictionary = values;
            ofDictionary = new boolean[values.getPositionCount()];
            for (int i = 0; i < ofDictionary.length; i++) {
                ofDictionary[i] = includes(values, i);
            }
        }
        return ofDictionary;
    }

    private boolean includes(ValueBlock values, int position)
    {
        return values.isNull(position) ? nulls : includes(type.getLong(values, position));
    }

    private boolean includes(long value)
    {
        int last = lows.length - 1;
        if (last < 0 || value < lows[0] || value > highs[last]) {
            return false;
        }
        if (discrete.isPresent()) {
            return discrete.get().contains(value);
        }
        if (last == 0) {
            return true;
        }
        int found = Arrays.binarySearch(lows, value);
        return found >= 0 || value <= highs[-found - 2];
    }
}
