package io.skipbridge.trino.hive;

import io.airlift.log.Logger;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.BridgeMetadata;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.skipbridge.trino.metadata.MissingEntity;
import io.trino.plugin.hive.HiveColumnHandle;
import io.trino.plugin.hive.HiveTableHandle;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.ConnectorMetadata;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTableMetadata;
import io.trino.spi.connector.ConnectorTableVersion;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.ConstraintApplicationResult;
import io.trino.spi.connector.JoinApplicationResult;
import io.trino.spi.connector.JoinCondition;
import io.trino.spi.connector.JoinStatistics;
import io.trino.spi.connector.JoinType;
import io.trino.spi.connector.ProjectionApplicationResult;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.connector.SystemTable;
import io.trino.spi.connector.TableFunctionApplicationResult;
import io.trino.spi.expression.ConnectorExpression;
import io.trino.spi.function.table.ConnectorTableFunctionHandle;
import io.trino.spi.statistics.ColumnStatistics;
import io.trino.spi.statistics.TableStatistics;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import static io.skipbridge.trino.BridgeErrorCode.OPERATION_BLOCKED;
import static io.trino.spi.StandardErrorCode.UNSUPPORTED_TABLE_TYPE;

/**
 * The metadata of one transaction: Hive's, with the planner's in front for tables that are read natively. The handle of a table says which side it
 * belongs to, and {@link MetadataRule} what becomes of each call. Handles are never wrapped.
 *
 * <p>It is a handler of a proxy, because Trino adds methods with each release, which then are Hive's. Its public methods are those of the interface that
 * need code of their own.
 */
public final class BothMetadata
        implements InvocationHandler
{
    private static final Logger log = Logger.get(BothMetadata.class);
    private static final Map<Method, Method> OWN = own();
    private static final String PARTITIONS = "$partitions";

    private final String catalog;
    private final HiveSettings settings;
    private final BridgeMetadata bridge;
    private final ConnectorMetadata hive;
    private final HiveTables tables;
    private final Set<SchemaTableName> changed;
    private final WrittenPartitions written;
    private final Set<StatementTable> executed = ConcurrentHashMap.newKeySet();
    private final Set<StatementTable> inserted = ConcurrentHashMap.newKeySet();
    private volatile Optional<String> away = Optional.empty();

    private BothMetadata(String catalog, HiveSettings settings, BridgeMetadata bridge, ConnectorMetadata hive, Set<SchemaTableName> changed, WrittenPartitions written)
    {
        this.catalog = catalog;
        this.settings = settings;
        this.bridge = bridge;
        this.hive = hive;
        this.tables = new HiveTables(hive);
        this.changed = changed;
        this.written = written;
    }

    /**
     * @param changed takes the tables that the transaction changes
     * @param written takes the partitions that it writes
     */
    static ConnectorMetadata create(
            String catalog, HiveSettings settings, BridgeMetadata bridge, ConnectorMetadata hive, Set<SchemaTableName> changed, WrittenPartitions written)
    {
        return (ConnectorMetadata) Proxy.newProxyInstance(
                BothMetadata.class.getClassLoader(),
                new Class<?>[] {ConnectorMetadata.class},
                new BothMetadata(catalog, settings, bridge, hive, changed, written));
    }

    private static Map<Method, Method> own()
    {
        Map<Method, Method> own = new HashMap<>();
        for (Method method : ConnectorMetadata.class.getMethods()) {
            try {
                own.put(method, BothMetadata.class.getMethod(method.getName(), method.getParameterTypes()));
            }
            catch (NoSuchMethodException e) {
                // one of the others
            }
        }
        return Map.copyOf(own);
    }

    static boolean has(Method method)
    {
        return OWN.containsKey(method);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments)
            throws Throwable
    {
        try {
            if (method.getDeclaringClass() == Object.class) {
                return switch (method.getName()) {
                    case "equals" -> proxy == arguments[0];
                    case "hashCode" -> System.identityHashCode(proxy);
                    default -> "BothMetadata of " + catalog;
                };
            }
            Object[] given = arguments == null ? new Object[0] : arguments;
            Object answer = answer(method, given);
            written.note(method.getName(), given);
            return given.length > 1 && given[1] instanceof HiveReadTable table ? table.keepReason(answer) : answer;
        }
        catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private Object answer(Method method, Object[] arguments)
            throws ReflectiveOperationException
    {
        Method own = OWN.get(method);
        if (own != null) {
            return own.invoke(this, arguments);
        }
        Optional<MetadataRule> rule = MetadataRule.of(method.getName());
        Optional<BridgeTableHandle> table = Arrays.stream(arguments).filter(BridgeTableHandle.class::isInstance).map(BridgeTableHandle.class::cast).findFirst();
        boolean change = rule.equals(Optional.of(MetadataRule.CHANGE));
        if (table.isEmpty()) {
            return change || rule.equals(Optional.of(MetadataRule.CHANGE_BY_NAME)) ? change(method, arguments, arguments) : method.invoke(hive, arguments);
        }
        ConnectorSession session = (ConnectorSession) arguments[0];
        if (rule.equals(Optional.of(MetadataRule.READ)) || !bridge.ofDirectories(session, table.get())) {
            return method.invoke(bridge, method.getName().startsWith("apply") ? replace(arguments, table.get(), fresh(session, table.get())) : arguments);
        }
        if (change || rule.equals(Optional.of(MetadataRule.CONVERT))) {
            switch (method.getName()) {
                case "getTableHandleForExecute" -> executed.add(StatementTable.of(session, table.get()));
                case "getInsertLayout" -> inserted.add(StatementTable.of(session, table.get()));
                default -> {}
            }
            Object[] converted = convert(session, table.get(), arguments);
            return change ? change(method, arguments, converted) : method.invoke(hive, converted);
        }
        throw new TrinoException(OPERATION_BLOCKED, "%s is not possible on %s while it is read natively. SET SESSION %s.native_reads = false, then run it again".formatted(
                method.getName(), table.get().name(), catalog));
    }

    /** A table and the statement that writes it. */
    private record StatementTable(String query, SchemaTableName name)
    {
        static StatementTable of(ConnectorSession session, BridgeTableHandle table)
        {
            return new StatementTable(session.getQueryId(), table.name());
        }
    }

    private static Object[] replace(Object[] arguments, Object old, Object other)
    {
        return Arrays.stream(arguments).map(argument -> argument == old ? other : argument).toArray();
    }

    /** The scan of a table into which the same statement inserts sees all that it may overwrite, whatever freshness the table has. */
    private BridgeTableHandle fresh(ConnectorSession session, BridgeTableHandle table)
    {
        return inserted.contains(StatementTable.of(session, table)) ? table.fresh() : table;
    }

    /** What does not begin has changed nothing; what fails later may have. */
    private Object change(Method method, Object[] arguments, Object[] converted)
            throws ReflectiveOperationException
    {
        if (!method.getName().startsWith("begin")) {
            Arrays.stream(arguments).forEach(this::addChange);
        }
        Object answer = method.invoke(hive, converted);
        Arrays.stream(arguments).forEach(this::addChange);
        return answer;
    }

    private void addChange(Object argument)
    {
        switch (argument) {
            case BridgeTableHandle table -> addChange(table.name());
            case HiveTableHandle table -> addChange(table.getSchemaTableName());
            case ConnectorTableMetadata table -> addChange(table.getTable());
            case SchemaTableName table -> changed.add(table);
            case null, default -> {}
        }
    }

    private Object[] convert(ConnectorSession session, BridgeTableHandle table, Object[] arguments)
    {
        HiveTableHandle target = tables.target(session, table);
        return Arrays.stream(arguments).map(argument -> convert(target, argument)).toArray();
    }

    private static Object convert(HiveTableHandle table, Object argument)
    {
        return switch (argument) {
            case BridgeTableHandle _ -> table;
            case BridgeColumnHandle column -> HiveTables.column(table, column);
            case List<?> list -> list.stream().map(each -> convert(table, each)).toList();
            case null, default -> argument;
        };
    }

    public ConnectorTableHandle getTableHandle(ConnectorSession session, SchemaTableName name, Optional<ConnectorTableVersion> start, Optional<ConnectorTableVersion> end)
    {
        Optional<String> off = settings.off(session);
        if (off.isPresent()) {
            ConnectorTableHandle table = hive.getTableHandle(session, name, start, end);
            return table == null ? null : hiveTable((HiveTableHandle) table, off.get());
        }
        boolean versioned = start.isPresent() || end.isPresent();
        Optional<HiveTableHandle> hives;
        try {
            hives = tables.find(session, name);
        }
        catch (TrinoException e) {
            if (!e.getErrorCode().equals(UNSUPPORTED_TABLE_TYPE.toErrorCode())) {
                throw e;
            }
            return nativeOnly(session, name, start, end, e);
        }
        if (hives.isEmpty()) {
            return null;
        }
        HiveTableHandle hiveTable = hives.get();
        Optional<String> reason = versioned ? Optional.empty() : reason(session, hiveTable);
        if (reason.isPresent() && known(session, hiveTable)) {
            return hiveTable(hiveTable, reason.get());
        }
        ConnectorTableHandle table;
        try {
            table = bridge.getTableHandle(session, name, start, end);
        }
        catch (TrinoException e) {
            boolean refused = MissingEntity.refused(e);
            if (!versioned && (MissingEntity.kind(e) || ((refused || HiveSettings.readsWithoutPlanner(session)) && known(session, hiveTable)))) {
                String told = MissingEntity.sentence(e);
                if (!refused) {
                    away = Optional.of(told);
                }
                return hiveTable(hiveTable, told);
            }
            throw e;
        }
        if (table == null) {
            return hiveTable(hiveTable, "the planner does not know it");
        }
        if (bridge.ofDirectories(session, table) && !versioned && !HiveTables.sameColumns(hiveTable, bridge.getTableMetadata(session, table).getColumns())) {
            return hiveTable(hiveTable, "the planner gives its columns other names or types");
        }
        return table;
    }

    /** A table that Hive's connector refuses. */
    private ConnectorTableHandle nativeOnly(
            ConnectorSession session, SchemaTableName name, Optional<ConnectorTableVersion> start, Optional<ConnectorTableVersion> end, TrinoException refusal)
    {
        try {
            ConnectorTableHandle table = bridge.getTableHandle(session, name, start, end);
            if (table != null) {
                return table;
            }
        }
        catch (TrinoException e) {
            if (!MissingEntity.refused(e)) {
                throw e;
            }
            refusal.addSuppressed(e);
        }
        throw refusal;
    }

    private Optional<String> reason(ConnectorSession session, HiveTableHandle table)
    {
        if (changed.contains(table.getSchemaTableName()) || changed.contains(RecentChanges.all(table.getSchemaName()))) {
            return Optional.of("the transaction changes it");
        }
        return away.or(() -> settings.hives(session)).or(() -> tables.bucketed(session, table) ? Optional.of("it is bucketed") : Optional.empty());
    }

    /** Whether Hive knows the format, which it does not of tables of segments. What else it does not know the planner refuses. */
    private boolean known(ConnectorSession session, HiveTableHandle table)
    {
        return hive.getTableMetadata(session, table).getProperties().containsKey("format");
    }

    private static HiveTableHandle hiveTable(HiveTableHandle table, String reason)
    {
        log.debug("%s is read by Hive's reader: %s", table, reason);
        return new HiveReadTable(table, reason);
    }

    public Optional<SystemTable> getSystemTable(ConnectorSession session, SchemaTableName name)
    {
        Optional<SystemTable> hives = hive.getSystemTable(session, name);
        return hives.isPresent() || settings.elsewhere().isPresent() || withoutPartitions(session, name) ? hives : bridge.getSystemTable(session, name);
    }

    /** Whether a name is that of the partitions of a table that has none in Hive. Clients take them for an index of the table. */
    private boolean withoutPartitions(ConnectorSession session, SchemaTableName name)
    {
        if (!name.getTableName().endsWith(PARTITIONS)) {
            return false;
        }
        String table = name.getTableName().substring(0, name.getTableName().length() - PARTITIONS.length());
        try {
            return !table.isEmpty() && tables.find(session, new SchemaTableName(name.getSchemaName(), table)).filter(found -> known(session, found)).isPresent();
        }
        catch (TrinoException e) {
            if (!e.getErrorCode().equals(UNSUPPORTED_TABLE_TYPE.toErrorCode())) {
                throw e;
            }
            return false;
        }
    }

    /** Hive's, with the table's properties; the columns are the same, or the handle would not be native. */
    public ConnectorTableMetadata getTableMetadata(ConnectorSession session, ConnectorTableHandle handle)
    {
        if (handle instanceof BridgeTableHandle table) {
            return bridge.ofDirectories(session, table) ? hive.getTableMetadata(session, tables.get(session, table)) : bridge.getTableMetadata(session, table);
        }
        return hive.getTableMetadata(session, handle);
    }

    public ColumnMetadata getColumnMetadata(ConnectorSession session, ConnectorTableHandle handle, ColumnHandle column)
    {
        if (handle instanceof BridgeTableHandle table) {
            return column instanceof BridgeColumnHandle ? bridge.getColumnMetadata(session, table, column) : hive.getColumnMetadata(session, tables.get(session, table), column);
        }
        return hive.getColumnMetadata(session, handle, handle instanceof HiveTableHandle table ? HiveTables.column(table, column) : column);
    }

    /**
     * For a scan whose table is to be changed Hive answers, and its handle takes the place of the native one. So the statement does what it does in the
     * hive connector: the filter is in Hive's handle, or remains in the plan and refuses the statement. The scan's columns stay the native ones.
     */
    public Optional<ConstraintApplicationResult<ConnectorTableHandle>> applyFilter(ConnectorSession session, ConnectorTableHandle handle, Constraint constraint)
    {
        boolean mixed = mixed(handle, constraint.getAssignments().values()) || mixed(handle, constraint.getSummary().getDomains().orElse(Map.of()).keySet());
        if (handle instanceof BridgeTableHandle table) {
            return mixed || executed.contains(StatementTable.of(session, table))
                    ? tables.filter(session, tables.target(session, table), constraint)
                    : bridge.applyFilter(session, fresh(session, table), constraint);
        }
        return mixed ? tables.filter(session, (HiveTableHandle) handle, constraint) : hive.applyFilter(session, handle, constraint);
    }

    public Optional<ProjectionApplicationResult<ConnectorTableHandle>> applyProjection(
            ConnectorSession session,
            ConnectorTableHandle handle,
            List<ConnectorExpression> projections,
            Map<String, ColumnHandle> assignments)
    {
        return mixed(handle, assignments.values())
                ? Optional.empty()
                : (handle instanceof BridgeTableHandle ? bridge : hive).applyProjection(session, handle, projections, assignments);
    }

    /** Whether columns of the other side are among a scan's: Hive's id of a row in a native scan, or native columns in that which took its place. */
    private static boolean mixed(ConnectorTableHandle handle, Collection<ColumnHandle> columns)
    {
        return columns.stream().anyMatch(column -> column instanceof BridgeColumnHandle != handle instanceof BridgeTableHandle);
    }

    /** The planner's, or those of ANALYZE where the planner knows nothing of the columns. */
    public TableStatistics getTableStatistics(ConnectorSession session, ConnectorTableHandle handle)
    {
        if (!(handle instanceof BridgeTableHandle table)) {
            return hive.getTableStatistics(session, handle);
        }
        TableStatistics planners = bridge.getTableStatistics(session, table);
        boolean known = planners.getColumnStatistics().values().stream().anyMatch(column -> !column.equals(ColumnStatistics.empty()));
        if (known || table.aggregateRows().isPresent() || !bridge.ofDirectories(session, table)) {
            return planners;
        }
        TableStatistics hives = hive.getTableStatistics(session, tables.partitions(session, table));
        if (hives.getRowCount().isUnknown()) {
            return planners;
        }
        Map<String, ColumnHandle> columns = bridge.getColumnHandles(session, table);
        TableStatistics.Builder statistics = TableStatistics.builder().setRowCount(hives.getRowCount());
        hives.getColumnStatistics().forEach((column, values) ->
                Optional.ofNullable(columns.get(((HiveColumnHandle) column).getName())).ifPresent(own -> statistics.setColumnStatistics(own, values)));
        return statistics.build();
    }

    public Optional<TableFunctionApplicationResult<ConnectorTableHandle>> applyTableFunction(ConnectorSession session, ConnectorTableFunctionHandle handle)
    {
        return bridge.applyTableFunction(session, handle).or(() -> hive.applyTableFunction(session, handle));
    }

    public Optional<JoinApplicationResult<ConnectorTableHandle>> applyJoin(
            ConnectorSession session,
            JoinType type,
            ConnectorTableHandle left,
            ConnectorTableHandle right,
            ConnectorExpression condition,
            Map<String, ColumnHandle> leftColumns,
            Map<String, ColumnHandle> rightColumns,
            JoinStatistics statistics)
    {
        return Optional.empty();
    }

    public Optional<JoinApplicationResult<ConnectorTableHandle>> applyJoin(
            ConnectorSession session,
            JoinType type,
            ConnectorTableHandle left,
            ConnectorTableHandle right,
            List<JoinCondition> conditions,
            Map<String, ColumnHandle> leftColumns,
            Map<String, ColumnHandle> rightColumns,
            JoinStatistics statistics)
    {
        return Optional.empty();
    }

    public void dropSchema(ConnectorSession session, String name, boolean cascade)
    {
        addChange(RecentChanges.all(name));
        hive.dropSchema(session, name, cascade);
    }
}
