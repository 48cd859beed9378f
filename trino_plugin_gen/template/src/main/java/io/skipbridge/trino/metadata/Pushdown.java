package io.skipbridge.trino.metadata;

import io.skipbridge.trino.BridgeSession;
import io.skipbridge.trino.predicate.ValueReader;
import io.skipbridge.trino.wire.AggregateRequest.Aggregate;
import io.skipbridge.trino.wire.AggregateResult;
import io.skipbridge.trino.wire.ColumnDescription;
import io.skipbridge.trino.wire.SortKey;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.connector.AggregateFunction;
import io.trino.spi.connector.AggregationApplicationResult;
import io.trino.spi.connector.Assignment;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.ConstraintApplicationResult;
import io.trino.spi.connector.LimitApplicationResult;
import io.trino.spi.connector.ProjectionApplicationResult;
import io.trino.spi.connector.SortItem;
import io.trino.spi.connector.TopNApplicationResult;
import io.trino.spi.expression.ConnectorExpression;
import io.trino.spi.expression.Constant;
import io.trino.spi.expression.Variable;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.predicate.ValueSet;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.RealType;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Decides what is pushed down into the scan.
 *
 * <p>Limits and top-N only skip files: the engine still counts and sorts. Filters also only skip files, unless the planner says that all rows of
 * each remaining file match. Aggregations are pushed down only with their exact result.
 */
final class Pushdown
{
    private final PlannerStatistics statistics;

    Pushdown(PlannerStatistics statistics)
    {
        this.statistics = statistics;
    }

    /** Conjoins the constraint. A repeated call changes nothing, which ends the engine's loop. */
    Optional<ConstraintApplicationResult<ConnectorTableHandle>> filter(ConnectorSession session, BridgeTableHandle table, TableDescription described, Constraint constraint)
    {
        if (table.reduced()) {
            return Optional.empty();
        }
        ScanFilter filter = table.filter().and(constraint);
        if (filter.equals(table.filter())) {
            return Optional.empty();
        }
        if (BridgeSession.metadataAnswersEnabled(session) && table.unenforcedConstraint().isAll() && mayBeEnforced(filter, described)) {
            AggregateResult result = statistics.enforces(session, table, filter);
            if (result.enforced()) {
                return Optional.of(new ConstraintApplicationResult<>(
                        table.withFilter(filter, true, Optional.of(result.endpoint())), TupleDomain.all(), Constant.TRUE, false));
            }
        }
        if (table.enforced()) {
            ScanFilter unenforced = table.unenforcedConstraint().and(constraint);
            return unenforced.equals(table.unenforcedConstraint()) ? Optional.empty() : Optional.of(kept(table.withUnenforcedConstraint(unenforced), constraint));
        }
        return Optional.of(kept(table.withFilter(filter, false, Optional.empty()), constraint));
    }

    /** False if a condition surely leaves a file of which it holds for some rows only. The planner is then not asked. */
    private static boolean mayBeEnforced(ScanFilter filter, TableDescription described)
    {
        if (filter.domains().isNone()) {
            return false;
        }
        Map<String, ColumnDescription> overlapping = described.columns().stream()
                .filter(ColumnDescription::overlapping)
                .collect(Collectors.toMap(ColumnDescription::name, Function.identity()));
        return filter.domains().getDomains().orElseThrow().entrySet().stream()
                .noneMatch(each -> each.getKey().isData() && overlapping.containsKey(each.getKey().name()) && cuts(each.getValue(), overlapping.get(each.getKey().name())));
    }

    /** Whether the domain leaves some values of the column and not others, as far as the column's range tells. */
    private static boolean cuts(Domain domain, ColumnDescription column)
    {
        if (domain.getValues().isAll()) {
            return false;
        }
        if (domain.getType().getJavaType() != long.class || domain.getType() instanceof DecimalType || domain.getType() instanceof RealType
                || column.low().isEmpty() || column.high().isEmpty() || column.low().getAsDouble() > column.high().getAsDouble()) {
            return true;
        }
        ValueSet range = ValueSet.ofRanges(Range.range(domain.getType(), (long) column.low().getAsDouble(), true, (long) column.high().getAsDouble(), true));
        return domain.getValues().overlaps(range) && !domain.getValues().contains(range);
    }

    private static ConstraintApplicationResult<ConnectorTableHandle> kept(BridgeTableHandle table, Constraint constraint)
    {
        return new ConstraintApplicationResult<>(table, constraint.getSummary(), constraint.getExpression(), false);
    }

    /** Remembers which columns the scan reads: the planner may know smaller files that hold them. Expressions are left to the engine. */
    Optional<ProjectionApplicationResult<ConnectorTableHandle>> projection(BridgeTableHandle table, List<ConnectorExpression> projections, Map<String, ColumnHandle> assignments)
    {
        if (table.aggregateRows().isPresent() || !projections.stream().allMatch(Variable.class::isInstance)) {
            return Optional.empty();
        }
        List<String> columns = assignments.values().stream().map(column -> ((BridgeColumnHandle) column).name()).distinct().sorted().toList();
        if (table.columns().equals(Optional.of(columns))) {
            return Optional.empty();
        }
        List<Assignment> same = assignments.entrySet().stream()
                .map(each -> new Assignment(each.getKey(), each.getValue(), ((BridgeColumnHandle) each.getValue()).type()))
                .toList();
        return Optional.of(new ProjectionApplicationResult<>(table.withColumns(columns), projections, same, false));
    }

    Optional<LimitApplicationResult<ConnectorTableHandle>> limit(ConnectorSession session, BridgeTableHandle table, long limit)
    {
        boolean less = table.limit().isPresent() && table.limit().getAsLong() <= limit;
        if (!BridgeSession.limitPruningEnabled(session) || !table.whole() || table.aggregateRows().isPresent() || !table.order().isEmpty() || less) {
            return Optional.empty();
        }
        return Optional.of(new LimitApplicationResult<>(table.withLimit(limit, List.of()), false, false));
    }

    Optional<TopNApplicationResult<ConnectorTableHandle>> topN(
            ConnectorSession session, BridgeTableHandle table, long count, List<SortItem> items, Map<String, ColumnHandle> assignments)
    {
        if (!BridgeSession.topNPruningEnabled(session) || !table.whole() || table.reduced()) {
            return Optional.empty();
        }
        List<SortKey> order = new ArrayList<>();
        for (SortItem item : items) {
            if (!(assignments.get(item.getName()) instanceof BridgeColumnHandle column)) {
                break;
            }
            order.add(new SortKey(column.name(), !item.getSortOrder().isAscending(), item.getSortOrder().isNullsFirst()));
        }
        if (order.isEmpty()) {
            return Optional.empty();
        }
        return Optional.of(new TopNApplicationResult<>(table.withLimit(count, order), false, false));
    }

    Optional<AggregationApplicationResult<ConnectorTableHandle>> aggregation(
            ConnectorSession session,
            BridgeTableHandle table,
            List<AggregateFunction> functions,
            Map<String, ColumnHandle> assignments,
            List<List<ColumnHandle>> groupingSets)
    {
        if (!BridgeSession.metadataAnswersEnabled(session) || !table.whole() || table.reduced() || groupingSets.size() != 1) {
            return Optional.empty();
        }
        List<BridgeColumnHandle> groups = groupingSets.getFirst().stream().map(BridgeColumnHandle.class::cast).toList();
        if (groups.stream().anyMatch(group -> group.kind() != ColumnKind.PARTITION_KEY && group.kind() != ColumnKind.PARTITION)) {
            return Optional.empty();
        }
        List<Aggregate> aggregates = new ArrayList<>();
        for (AggregateFunction function : functions) {
            Optional<Aggregate> aggregate = aggregate(function, assignments);
            if (aggregate.isEmpty()) {
                return Optional.empty();
            }
            aggregates.add(aggregate.get());
        }
        AggregateResult result = statistics.aggregate(session, table, table.filter(), List.copyOf(aggregates), groups.stream().map(BridgeColumnHandle::name).toList());
        return result.answered() ? Optional.of(answered(table, functions, aggregates, groups, result)) : Optional.empty();
    }

    private static AggregationApplicationResult<ConnectorTableHandle> answered(
            BridgeTableHandle table, List<AggregateFunction> functions, List<Aggregate> aggregates, List<BridgeColumnHandle> groups, AggregateResult result)
    {
        List<BridgeColumnHandle> columns = new ArrayList<>(groups);
        List<ConnectorExpression> projections = new ArrayList<>();
        List<Assignment> assignments = new ArrayList<>();
        for (int i = 0; i < aggregates.size(); i++) {
            AggregateFunction function = functions.get(i);
            String name = "$%d %s".formatted(i, aggregates.get(i));
            BridgeColumnHandle column = BridgeColumnHandle.computed(name, function.getOutputType());
            columns.add(column);
            projections.add(new Variable(name, function.getOutputType()));
            assignments.add(new Assignment(name, column, function.getOutputType()));
        }
        List<String> words = new ArrayList<>(aggregates.stream().map(Aggregate::toString).toList());
        words.addAll(groups.stream().map(BridgeColumnHandle::name).toList());
        String text = "%s of %d files".formatted(String.join(", ", words), result.files());
        AggregateRows known = new AggregateRows(columns, result.rows(), AggregatePages.count(result.rows()), text);
        return new AggregationApplicationResult<>(table.withAggregateRows(known), projections, assignments, Map.of(), false);
    }

    private static Optional<Aggregate> aggregate(AggregateFunction function, Map<String, ColumnHandle> assignments)
    {
        if (function.isDistinct() || function.getFilter().isPresent() || !function.getSortItems().isEmpty() || !ValueReader.readable(function.getOutputType())) {
            return Optional.empty();
        }
        String name = function.getFunctionName();
        List<ConnectorExpression> arguments = function.getArguments();
        if (name.equals("count") && arguments.isEmpty()) {
            return Optional.of(new Aggregate(name, ""));
        }
        boolean known = name.equals("count") || name.equals("min") || name.equals("max");
        if (!known || arguments.size() != 1 || !(arguments.getFirst() instanceof Variable variable)
                || !(assignments.get(variable.getName()) instanceof BridgeColumnHandle column)) {
            return Optional.empty();
        }
        boolean same = name.equals("count") || column.type().equals(function.getOutputType());
        return same ? Optional.of(new Aggregate(name, column.name())) : Optional.empty();
    }
}
