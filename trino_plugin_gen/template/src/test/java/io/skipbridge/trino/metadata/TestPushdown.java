package io.skipbridge.trino.metadata;

import io.skipbridge.trino.predicate.ExpressionWriter;
import io.skipbridge.trino.wire.AggregateResult;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.ConstraintApplicationResult;
import io.trino.spi.expression.Call;
import io.trino.spi.expression.ConnectorExpression;
import io.trino.spi.expression.Constant;
import io.trino.spi.expression.Variable;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.predicate.ValueSet;
import org.junit.jupiter.api.Test;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.Random;
import java.util.function.Predicate;

import static io.trino.spi.expression.StandardFunctions.LESS_THAN_OPERATOR_FUNCTION_NAME;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/**
 * The law of filters: what the engine still evaluates, over the files that the scan keeps, gives the rows that the whole predicate gives.
 *
 * <p>Random files and constraints, applied one after another. The planner is played by brute force over the rows of the files.
 */
class TestPushdown
{
    private static final List<BridgeColumnHandle> COLUMNS = List.of(
            new BridgeColumnHandle("x", BIGINT, ColumnKind.DATA, 0),
            new BridgeColumnHandle("y", BIGINT, ColumnKind.DATA, 1));
    private static final Map<String, ColumnHandle> ASSIGNMENTS = Map.of("x", COLUMNS.get(0), "y", COLUMNS.get(1));
    private static final TableDescription DESCRIBED = new TableDescription(
            "db", "t", List.of(), OptionalDouble.empty(), "", "parquet", Optional.empty(), Optional.empty(), Optional.empty(), "", "", "directory");

    private final Random random = new Random(Long.getLong("skipbridge.seed", 7));
    private final Map<String, Predicate<Long[]>> meaning = new HashMap<>();
    private List<List<Long[]>> files;
    private int enforced;
    private int dropped;

    @Test
    void noRowIsLostOrLeftIn()
    {
        for (int round = 0; round < 3_000; round++) {
            files = files();
            Pushdown pushdown = new Pushdown(new Files());
            ConnectorSession session = session("q" + round, random.nextInt(4) > 0);
            BridgeTableHandle table = table();
            Predicate<Long[]> whole = _ -> true;
            Predicate<Long[]> evaluated = _ -> true;
            for (int n = random.nextInt(3); n >= 0; n--) {
                Constraint constraint = constraint();
                whole = whole.and(meaning(constraint.getSummary(), constraint.getExpression()));
                Optional<ConstraintApplicationResult<ConnectorTableHandle>> applied = pushdown.filter(session, table, DESCRIBED, constraint);
                if (applied.isEmpty()) {
                    evaluated = evaluated.and(meaning(constraint.getSummary(), constraint.getExpression()));
                    continue;
                }
                table = (BridgeTableHandle) applied.get().getHandle();
                evaluated = evaluated.and(meaning(applied.get().getRemainingFilter(), applied.get().getRemainingExpression().orElse(constraint.getExpression())));
                assertTrue(pushdown.filter(session, table, DESCRIBED, constraint).isEmpty(), "a repeated call changes nothing");
            }
            enforced += table.enforced() ? 1 : 0;
            List<String> found = new ArrayList<>();
            for (List<Long[]> file : kept(table.filter().and(table.unenforcedConstraint()))) {
                file.stream().filter(evaluated).forEach(row -> found.add(row[0] + " " + row[1]));
            }
            List<String> expected = new ArrayList<>();
            for (List<Long[]> file : files) {
                file.stream().filter(whole).forEach(row -> expected.add(row[0] + " " + row[1]));
                dropped += file.stream().anyMatch(whole) ? 0 : 1;
            }
            assertEquals(expected, found, "round " + round);
        }
        assertTrue(enforced > 100, enforced + " filters were enforced");
        assertTrue(dropped > 1_000, dropped + " files without a matching row");
    }

    /** Each file has values that are close together, so that a filter may hold for all of them or for none. */
    private List<List<Long[]>> files()
    {
        List<List<Long[]>> made = new ArrayList<>();
        for (int n = random.nextInt(4); n >= 0; n--) {
            List<Long[]> rows = new ArrayList<>();
            int near = random.nextInt(10);
            for (int row = random.nextInt(3); row >= 0; row--) {
                rows.add(new Long[] {value(near), value(near)});
            }
            made.add(rows);
        }
        return made;
    }

    private Long value(int near)
    {
        return random.nextInt(8) == 0 ? null : (long) near + random.nextInt(2);
    }

    private Constraint constraint()
    {
        Map<ColumnHandle, Domain> domains = new HashMap<>();
        for (BridgeColumnHandle column : COLUMNS) {
            if (random.nextInt(2) == 0) {
                domains.put(column, domain());
            }
        }
        ConnectorExpression expression = Constant.TRUE;
        if (random.nextInt(3) == 0) {
            int column = random.nextInt(2);
            long limit = random.nextInt(12);
            expression = new Call(BOOLEAN, LESS_THAN_OPERATOR_FUNCTION_NAME, List.of(new Variable(COLUMNS.get(column).name(), BIGINT), new Constant(limit, BIGINT)));
            Predicate<Long[]> less = row -> row[column] != null && row[column] < limit;
            ExpressionWriter.conjuncts(expression, ASSIGNMENTS).forEach(conjunct -> meaning.put(conjunct, less));
        }
        return new Constraint(TupleDomain.withColumnDomains(domains), expression, ASSIGNMENTS);
    }

    private Domain domain()
    {
        long low = random.nextInt(11);
        ValueSet values = switch (random.nextInt(4)) {
            case 0 -> ValueSet.of(BIGINT, low);
            case 1 -> ValueSet.of(BIGINT, low).complement();
            case 2 -> ValueSet.ofRanges(Range.lessThan(BIGINT, low));
            default -> ValueSet.ofRanges(Range.range(BIGINT, low, true, low + random.nextInt(6), true));
        };
        return Domain.create(values, random.nextInt(3) == 0);
    }

    private Predicate<Long[]> meaning(TupleDomain<ColumnHandle> domains, ConnectorExpression expression)
    {
        return meaning(new ScanFilter(domains.transformKeys(BridgeColumnHandle.class::cast), ExpressionWriter.conjuncts(expression, ASSIGNMENTS)));
    }

    private Predicate<Long[]> meaning(ScanFilter filter)
    {
        return row -> !filter.domains().isNone()
                && filter.domains().getDomains().orElseThrow().entrySet().stream().allMatch(each -> each.getValue().includesNullableValue(row[each.getKey().ordinal()]))
                && filter.conjuncts().stream().allMatch(conjunct -> meaning.get(conjunct).test(row));
    }

    private List<List<Long[]>> kept(ScanFilter filter)
    {
        return files.stream().filter(rows -> rows.stream().anyMatch(meaning(filter))).toList();
    }

    private static BridgeTableHandle table()
    {
        return new BridgeTableHandle(
                "db", "t", "", "", "UTC", "", List.of(), ScanFilter.ALL, false, ScanFilter.ALL, OptionalLong.empty(), List.of(), Optional.empty(), Optional.empty(), Optional.empty());
    }

    private static ConnectorSession session(String query, boolean answers)
    {
        return (ConnectorSession) Proxy.newProxyInstance(TestPushdown.class.getClassLoader(), new Class<?>[] {ConnectorSession.class}, (_, method, arguments) -> switch (method.getName()) {
            case "getQueryId" -> query;
            case "getProperty" -> arguments[0].equals("metadata_answers_enabled") ? answers : true;
            default -> throw new UnsupportedOperationException(method.getName());
        });
    }

    /** Knows the rows of every file. */
    private final class Files
            extends PlannerStatistics
    {
        private Files()
        {
            super(null, "UTC");
        }

        @Override
        AggregateResult enforces(ConnectorSession session, BridgeTableHandle table, ScanFilter filter)
        {
            boolean every = kept(filter).stream().allMatch(rows -> rows.stream().allMatch(meaning(filter)));
            return new AggregateResult("", every, false, "", "", 0);
        }
    }
}
