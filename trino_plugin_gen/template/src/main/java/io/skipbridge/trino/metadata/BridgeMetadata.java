package io.skipbridge.trino.metadata;

import io.skipbridge.client.BridgeFailure;
import io.skipbridge.trino.BridgeSession;
import io.skipbridge.trino.Planners;
import io.skipbridge.trino.wire.PlannerClient;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.AggregateFunction;
import io.trino.spi.connector.AggregationApplicationResult;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.ConnectorAnalyzeMetadata;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTableMetadata;
import io.trino.spi.connector.ConnectorTableVersion;
import io.trino.spi.connector.ConnectorViewDefinition;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.ConstraintApplicationResult;
import io.trino.spi.connector.LimitApplicationResult;
import io.trino.spi.connector.ProjectionApplicationResult;
import io.trino.spi.connector.RelationColumnsMetadata;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.connector.SortItem;
import io.trino.spi.connector.SystemTable;
import io.trino.spi.connector.TableFunctionApplicationResult;
import io.trino.spi.connector.TableNotFoundException;
import io.trino.spi.connector.TopNApplicationResult;
import io.trino.spi.expression.ConnectorExpression;
import io.trino.spi.function.table.ConnectorTableFunctionHandle;
import io.trino.spi.statistics.Estimate;
import io.trino.spi.statistics.TableStatistics;
import io.trino.spi.type.TypeManager;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.UnaryOperator;

import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;

/** The planner's catalog as one transaction sees it. Each table is requested once, however often the engine asks. */
public class BridgeMetadata
        extends SegmentRefusals
{
    private static final String DIRECTORY = "directory";

    private final Planners planners;
    private final TypeManager types;
    private final String timeZone;
    private final PlannerStatistics statistics;
    private final Pushdown pushdown;
    private final Function<SchemaTableName, OptionalLong> ages;
    private final Map<String, Optional<Long>> agesOfQueries = new ConcurrentHashMap<>();
    private final Map<TableVersion, Optional<TableColumns>> tables = new ConcurrentHashMap<>();
    private final AtomicInteger handles = new AtomicInteger();

    /**
     * @param timeZone in which UTC timestamps are read
     * @param ages milliseconds since a table may last have been changed by this catalog; empty: it changes none
     */
    public BridgeMetadata(Planners planners, TypeManager types, String timeZone, Function<SchemaTableName, OptionalLong> ages)
    {
        this.ages = ages;
        this.planners = planners;
        this.types = types;
        this.timeZone = timeZone;
        this.statistics = new PlannerStatistics(planners, timeZone);
        this.pushdown = new Pushdown(statistics);
    }

    @Override
    public List<String> listSchemaNames(ConnectorSession session)
    {
        return planners.call(session.getQueryId(), client -> client.listSchemas());
    }

    @Override
    public List<SchemaTableName> listTables(ConnectorSession session, Optional<String> schemaName)
    {
        return names(session, schemaName, PlannerClient::listTables);
    }

    @Override
    public List<SchemaTableName> listViews(ConnectorSession session, Optional<String> schemaName)
    {
        return names(session, schemaName, PlannerClient::listViews);
    }

    @Override
    public Map<SchemaTableName, ConnectorViewDefinition> getViews(ConnectorSession session, Optional<String> schemaName)
    {
        Map<SchemaTableName, ConnectorViewDefinition> views = new HashMap<>();
        Relations.describe(listViews(session, schemaName), name -> describe(session, name).flatMap(TableColumns::view).map(view -> Map.entry(name, view)))
                .forEach(view -> views.put(view.getKey(), view.getValue()));
        return views;
    }

    @Override
    public Optional<ConnectorViewDefinition> getView(ConnectorSession session, SchemaTableName name)
    {
        if (SystemTableKind.of(name).isPresent()) {
            return Optional.empty();
        }
        // What is refused is no view. If the engine then asks for it as a table, it gets the refusal.
        return Relations.unlessRefused(() -> newest(session, name).flatMap(TableColumns::view));
    }

    private interface Names
    {
        List<String> of(PlannerClient client, String schema)
                throws IOException, BridgeFailure;
    }

    private List<SchemaTableName> names(ConnectorSession session, Optional<String> schemaName, Names source)
    {
        List<SchemaTableName> names = new ArrayList<>();
        for (String schema : schemaName.map(List::of).orElseGet(() -> listSchemaNames(session))) {
            for (String table : names(session, schema, source)) {
                names.add(new SchemaTableName(schema, table));
            }
        }
        return names;
    }

    private List<String> names(ConnectorSession session, String schema, Names source)
    {
        try {
            return planners.call(session.getQueryId(), client -> source.of(client, schema));
        }
        catch (TrinoException e) {
            if (MissingEntity.schema(e)) {
                return List.of();
            }
            throw e;
        }
    }

    @Override
    public ConnectorTableHandle getTableHandle(ConnectorSession session, SchemaTableName name, Optional<ConnectorTableVersion> start, Optional<ConnectorTableVersion> end)
    {
        TableVersion version = recent(session, TableVersions.of(session, name, start, end));
        handles.incrementAndGet();
        return table(session, version).map(table -> BridgeTableHandle.all(version, table, timeZone)).orElse(null);
    }

    /** A scan of what changed in a table. */
    TableChanges changes(ConnectorSession session, TableVersion asked)
    {
        TableVersion version = recent(session, asked);
        TableColumns table = table(session, version).orElseThrow(() -> new TableNotFoundException(version.name()));
        if (table.view().isPresent()) {
            throw new TrinoException(NOT_SUPPORTED, "%s is a view: only a table has changes".formatted(version.name()));
        }
        handles.incrementAndGet();
        return new TableChanges(
                BridgeTableHandle.all(version, table, timeZone),
                table.handles().values().stream().filter(column -> !column.kind().hidden()).toList());
    }

    @Override
    public Optional<TableFunctionApplicationResult<ConnectorTableHandle>> applyTableFunction(ConnectorSession session, ConnectorTableFunctionHandle handle)
    {
        return handle instanceof TableChanges changes
                ? Optional.of(new TableFunctionApplicationResult<>(changes.table(), List.copyOf(changes.columns())))
                : Optional.empty();
    }

    @Override
    public ConnectorTableMetadata getTableMetadata(ConnectorSession session, ConnectorTableHandle handle)
    {
        TableColumns table = table(session, handle);
        return new ConnectorTableMetadata(((BridgeTableHandle) handle).name(), table.metadata(), Map.of(), table.description().comment());
    }

    @Override
    public Map<String, ColumnHandle> getColumnHandles(ConnectorSession session, ConnectorTableHandle handle)
    {
        return new HashMap<>(table(session, handle).handles());
    }

    @Override
    public ColumnMetadata getColumnMetadata(ConnectorSession session, ConnectorTableHandle handle, ColumnHandle column)
    {
        return table(session, handle).metadata((BridgeColumnHandle) column);
    }

    @Override
    public Iterator<RelationColumnsMetadata> streamRelationColumns(ConnectorSession session, Optional<String> schemaName, UnaryOperator<Set<SchemaTableName>> relationFilter)
    {
        return Relations.describe(
                relationFilter.apply(Set.copyOf(listTables(session, schemaName))),
                name -> describe(session, name).map(table -> table.view()
                        .map(view -> RelationColumnsMetadata.forView(name, view.getColumns()))
                        .orElseGet(() -> RelationColumnsMetadata.forTable(name, table.metadata()))))
                .iterator();
    }

    @Override
    public TableStatistics getTableStatistics(ConnectorSession session, ConnectorTableHandle handle)
    {
        BridgeTableHandle table = (BridgeTableHandle) handle;
        if (table.aggregateRows().isPresent()) {
            return TableStatistics.builder().setRowCount(Estimate.of(table.aggregateRows().get().rowCount())).build();
        }
        if (!BridgeSession.statisticsEnabled(session)) {
            return TableStatistics.empty();
        }
        ScanFilter filter = table.filter().and(table.unenforcedConstraint());
        TableDescription described = table(session, handle).description();
        Optional<TableDescription> estimates = filter.isAll() && TableStatisticsReader.complete(described)
                ? Optional.of(described)
                : statistics.estimate(session, table, filter);
        return estimates
                .map(estimate -> TableStatisticsReader.read(estimate, table(session, handle).handles()))
                .orElseGet(TableStatistics::empty);
    }

    @Override
    public ConnectorAnalyzeMetadata getStatisticsCollectionMetadata(ConnectorSession session, ConnectorTableHandle handle, Map<String, Object> properties)
    {
        SchemaTableName table = ((BridgeTableHandle) handle).name();
        throw new TrinoException(NOT_SUPPORTED, "ANALYZE is not supported: the statistics of %s come from its index. Run: skipbridge index build %s".formatted(table, table));
    }

    @Override
    public Optional<SystemTable> getSystemTable(ConnectorSession session, SchemaTableName name)
    {
        return SystemTableKind.of(name)
                .filter(kind -> newest(session, kind.base(name)).isPresent())
                .map(kind -> new BridgeSystemTable(planners, name, kind, recent(session, new TableVersion(kind.base(name), "")).readVersion()));
    }

    @Override
    public Optional<ConstraintApplicationResult<ConnectorTableHandle>> applyFilter(ConnectorSession session, ConnectorTableHandle handle, Constraint constraint)
    {
        Optional<ConstraintApplicationResult<ConnectorTableHandle>> applied = pushdown.filter(session, (BridgeTableHandle) handle, table(session, handle).description(), constraint);
        // the optimiser asks for estimates only where there is a join
        if (handles.get() > 1 && BridgeSession.statisticsEnabled(session)) {
            applied.map(result -> (BridgeTableHandle) result.getHandle()).ifPresent(table -> statistics.requestEstimate(session, table, table.filter().and(table.unenforcedConstraint())));
        }
        return applied;
    }

    @Override
    public Optional<ProjectionApplicationResult<ConnectorTableHandle>> applyProjection(
            ConnectorSession session, ConnectorTableHandle handle, List<ConnectorExpression> projections, Map<String, ColumnHandle> assignments)
    {
        return pushdown.projection((BridgeTableHandle) handle, projections, assignments);
    }

    @Override
    public Optional<LimitApplicationResult<ConnectorTableHandle>> applyLimit(ConnectorSession session, ConnectorTableHandle handle, long limit)
    {
        return pushdown.limit(session, (BridgeTableHandle) handle, limit);
    }

    @Override
    public Optional<TopNApplicationResult<ConnectorTableHandle>> applyTopN(
            ConnectorSession session, ConnectorTableHandle handle, long topNCount, List<SortItem> sortItems, Map<String, ColumnHandle> assignments)
    {
        return pushdown.topN(session, (BridgeTableHandle) handle, topNCount, sortItems, assignments);
    }

    @Override
    public Optional<AggregationApplicationResult<ConnectorTableHandle>> applyAggregation(
            ConnectorSession session,
            ConnectorTableHandle handle,
            List<AggregateFunction> aggregates,
            Map<String, ColumnHandle> assignments,
            List<List<ColumnHandle>> groupingSets)
    {
        return pushdown.aggregation(session, (BridgeTableHandle) handle, aggregates, assignments, groupingSets);
    }

    @Override
    TableDescription description(ConnectorSession session, ConnectorTableHandle table)
    {
        return table(session, table).description();
    }

    /** Whether the table is the files of its directories, as Hive takes each table to be. */
    public boolean ofDirectories(ConnectorSession session, ConnectorTableHandle table)
    {
        return description(session, table).tableFormat().equals(DIRECTORY);
    }

    private TableColumns table(ConnectorSession session, ConnectorTableHandle handle)
    {
        TableVersion version = ((BridgeTableHandle) handle).version();
        return table(session, version).orElseThrow(() -> new TableNotFoundException(version.name()));
    }

    private Optional<TableColumns> newest(ConnectorSession session, SchemaTableName name)
    {
        return table(session, recent(session, TableVersions.newest(session, name)));
    }

    /** Under the age that the query found first, so that all its scans see the same files. */
    private TableVersion recent(ConnectorSession session, TableVersion version)
    {
        return agesOfQueries.computeIfAbsent(session.getQueryId() + " " + version.name(), _ -> ages.apply(version.name()).stream().boxed().findFirst())
                .map(version::withMaxAge)
                .orElse(version);
    }

    private Optional<TableColumns> table(ConnectorSession session, TableVersion version)
    {
        return tables.computeIfAbsent(version, key -> fetch(session, key, session.getQueryId()));
    }

    /** A table that will not be scanned: without a query the planner neither lists it nor opens its index. */
    private Optional<TableColumns> describe(ConnectorSession session, SchemaTableName name)
    {
        return fetch(session, TableVersions.newest(session, name), "");
    }

    /** @param query that will scan the table; empty: none */
    private Optional<TableColumns> fetch(ConnectorSession session, TableVersion version, String query)
    {
        String schema = version.name().getSchemaName();
        String table = version.name().getTableName();
        try {
            return Optional.of(TableColumns.of(
                    planners.call(session.getQueryId(), client -> client.getTable(query, schema, table, version.readVersion())),
                    types));
        }
        catch (TrinoException e) {
            if (MissingEntity.table(e)) {
                return Optional.empty();
            }
            throw e;
        }
    }
}
