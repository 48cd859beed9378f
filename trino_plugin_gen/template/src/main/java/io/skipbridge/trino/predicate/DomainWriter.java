package io.skipbridge.trino.predicate;

import io.skipbridge.client.JsonText;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.EquatableValueSet;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.SortedRangeSet;
import io.trino.spi.predicate.ValueSet;
import io.trino.spi.type.Type;

import java.util.List;

/** Writes one column's domain. More than {@link #MAX_RANGES} ranges become their span: a superset prunes less and loses no row, but it cannot be enforced. */
final class DomainWriter
{
    static final int MAX_RANGES = 10_000;

    private DomainWriter() {}

    static String write(BridgeColumnHandle column, Domain domain)
            throws NotWritable
    {
        Type type = domain.getType();
        JsonText json = new JsonText().open('{')
                .field("column", column.name())
                .field("type", type.getDisplayName())
                .field("null_allowed", domain.isNullAllowed());
        ValueSet values = domain.getValues();
        if (values.isAll()) {
            json.field("all", true);
        }
        else if (values.isNone()) {
            json.field("none", true);
        }
        else if (values instanceof SortedRangeSet set) {
            ranges(json, type, set);
        }
        else if (values instanceof EquatableValueSet set && set.getValuesCount() <= MAX_RANGES) {
            json.name("values").open('[');
            for (Object value : set.getValues()) {
                ValueWriter.write(json, type, value);
            }
            json.close(']').field("inclusive", set.inclusive());
        }
        else {
            throw new NotWritable("values of type " + type.getDisplayName());
        }
        return json.close('}').toString();
    }

    /** Whether the written domain is a superset of the given one. */
    static boolean weakened(Domain domain)
    {
        return domain.getValues() instanceof SortedRangeSet set && !set.isAll() && set.getRangeCount() > MAX_RANGES;
    }

    private static void ranges(JsonText json, Type type, SortedRangeSet set)
            throws NotWritable
    {
        List<Range> ranges = set.getRangeCount() > MAX_RANGES ? List.of(set.getSpan()) : set.getOrderedRanges();
        json.name("ranges").open('[');
        for (Range range : ranges) {
            json.open('{');
            if (!range.isLowUnbounded()) {
                ValueWriter.write(json.name("low"), type, range.getLowBoundedValue());
                json.field("low_inclusive", range.isLowInclusive());
            }
            if (!range.isHighUnbounded()) {
                ValueWriter.write(json.name("high"), type, range.getHighBoundedValue());
                json.field("high_inclusive", range.isHighInclusive());
            }
            json.close('}');
        }
        json.close(']');
    }
}
