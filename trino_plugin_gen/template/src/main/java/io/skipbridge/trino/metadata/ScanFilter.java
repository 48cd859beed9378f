package io.skipbridge.trino.metadata;

import io.skipbridge.trino.predicate.ExpressionWriter;
import io.skipbridge.trino.predicate.PredicateWriter;
import io.trino.spi.connector.Constraint;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.TreeSet;

import static java.util.Objects.requireNonNull;

/** The conjunction of {@code domains} and {@code conjuncts}. Conjuncts are expressions in wire form, sorted. */
public record ScanFilter(TupleDomain<BridgeColumnHandle> domains, List<String> conjuncts)
{
    public static final ScanFilter ALL = new ScanFilter(TupleDomain.all(), List.of());

    public ScanFilter
    {
        requireNonNull(domains, "domains is null");
        conjuncts = List.copyOf(conjuncts);
    }

    public boolean isAll()
    {
        return domains.isAll() && conjuncts.isEmpty();
    }

    public ScanFilter and(Constraint constraint)
    {
        TreeSet<String> together = new TreeSet<>(conjuncts);
        together.addAll(ExpressionWriter.conjuncts(constraint.getExpression(), constraint.getAssignments()));
        return new ScanFilter(domains.intersect(constraint.getSummary().transformKeys(BridgeColumnHandle.class::cast)), List.copyOf(together));
    }

    public ScanFilter and(ScanFilter other)
    {
        TreeSet<String> together = new TreeSet<>(conjuncts);
        together.addAll(other.conjuncts);
        return new ScanFilter(domains.intersect(other.domains), List.copyOf(together));
    }

    /** The wire form; empty without a filter. */
    public String written()
    {
        return PredicateWriter.write(domains, conjuncts);
    }

    @Override
    public String toString()
    {
        String columns = domains.getDomains().map(each -> each.keySet().stream().map(BridgeColumnHandle::name).sorted().toList().toString()).orElse("[none]");
        return conjuncts.isEmpty() ? columns : columns + " and " + conjuncts.size() + " expressions";
    }
}
