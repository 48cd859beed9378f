package io.skipbridge.trino.hive;

import io.airlift.log.Logger;
import io.skipbridge.trino.BridgeConfig;
import io.skipbridge.trino.BridgeConnector;
import io.skipbridge.trino.metadata.BridgeTableHandle;
import io.trino.plugin.hive.HiveConnectorFactory;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.Connector;
import io.trino.spi.connector.ConnectorAccessControl;
import io.trino.spi.connector.ConnectorCapabilities;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorMetadata;
import io.trino.spi.connector.ConnectorNodePartitioningProvider;
import io.trino.spi.connector.ConnectorPageSinkProvider;
import io.trino.spi.connector.ConnectorPageSourceProviderFactory;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplitManager;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.connector.TableProcedureMetadata;
import io.trino.spi.function.table.ConnectorTableFunction;
import io.trino.spi.procedure.Procedure;
import io.trino.spi.session.PropertyMetadata;
import io.trino.spi.transaction.IsolationLevel;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

import static io.skipbridge.trino.BridgeErrorCode.INVALID_CONFIGURATION;
import static java.util.stream.Collectors.toUnmodifiableSet;

/**
 * Trino's hive connector, which reads natively what the planner knows. Transactions and all handles of writes are Hive's own, so all that is not a read
 * goes to Hive as it is.
 */
public final class HiveCatalog
        implements Connector
{
    private static final Logger log = Logger.get(HiveCatalog.class);
    private static final String STATISTICS_ENABLED = "statistics_enabled";

    private final String catalog;
    private final HiveSettings settings;
    private final BridgeConnector bridge;
    private final Connector hive;
    private final List<PropertyMetadata<?>> sessionProperties;
    private final RecentChanges recent = new RecentChanges(System::nanoTime);
    private final Map<ConnectorTransactionHandle, Changes> changes = new ConcurrentHashMap<>();
    private final RefreshRequests refreshes;

    /** What a transaction changes. */
    private record Changes(Set<SchemaTableName> tables, WrittenPartitions written) {}

    private HiveCatalog(String catalog, HiveSettings settings, BridgeConnector bridge, Connector hive)
    {
        this.catalog = catalog;
        this.settings = settings;
        this.bridge = bridge;
        this.hive = hive;
        this.refreshes = new RefreshRequests(catalog, bridge::refreshIndex);
        this.sessionProperties = merge(hive.getSessionProperties(), bridge.getSessionProperties(), settings.sessionProperties());
    }

    /** @param bridges makes the native connector of its properties */
    public static Connector create(String catalog, Map<String, String> properties, Function<Map<String, String>, BridgeConnector> bridges, ConnectorContext context)
    {
        HiveSettings settings = HiveSettings.parse(properties);
        Map<String, String> own = new HashMap<>(properties);
        own.keySet().removeIf(name -> !BridgeConfig.reads(name) || HiveSettings.NAMES.contains(name) || name.startsWith("fs.cache."));
        Map<String, String> hives = new HashMap<>();
        properties.forEach((name, value) -> {
            if (name.startsWith("skipbridge.parquet.") || name.startsWith("skipbridge.orc.")) {
                hives.put(name.replace("skipbridge.", "hive."), value);
            }
            else if (!name.startsWith("skipbridge.")) {
                hives.put(name, value);
            }
        });
        BridgeConnector bridge = bridges.apply(own);
        try {
            HiveCatalog made = new HiveCatalog(catalog, settings, bridge, new HiveConnectorFactory().create(catalog, hives, context));
            settings.never().ifPresent(reason -> log.warn("Catalog %s reads no table natively: %s", catalog, reason));
            return made;
        }
        catch (RuntimeException e) {
            bridge.shutdown();
            throw e;
        }
    }

    /** The switch of statistics is in both; it is Hive's. */
    private static List<PropertyMetadata<?>> merge(List<PropertyMetadata<?>> hives, List<PropertyMetadata<?>> bridges, List<PropertyMetadata<?>> own)
    {
        Map<String, PropertyMetadata<?>> merged = new HashMap<>();
        hives.forEach(property -> merged.put(property.getName(), property));
        List<PropertyMetadata<?>> others = new ArrayList<>(bridges);
        others.removeIf(property -> property.getName().equals(STATISTICS_ENABLED));
        others.addAll(own);
        for (PropertyMetadata<?> property : others) {
            if (merged.put(property.getName(), property) != null) {
                throw new TrinoException(INVALID_CONFIGURATION, "This release of Trino has a session property %s of its own. Use the connector of the release".formatted(property.getName()));
            }
        }
        return List.copyOf(merged.values());
    }

    @Override
    public ConnectorTransactionHandle beginTransaction(IsolationLevel isolationLevel, boolean readOnly, boolean autoCommit)
    {
        ConnectorTransactionHandle transaction = bridge.begin(hive.beginTransaction(isolationLevel, readOnly, autoCommit), recent::age);
        changes.put(transaction, new Changes(ConcurrentHashMap.newKeySet(), new WrittenPartitions()));
        return transaction;
    }

    @Override
    public ConnectorMetadata getMetadata(ConnectorSession session, ConnectorTransactionHandle transaction)
    {
        Changes own = changes.get(transaction);
        return BothMetadata.create(catalog, settings, bridge.getMetadata(session, transaction), hive.getMetadata(session, transaction), own.tables(), own.written());
    }

    @Override
    public void commit(ConnectorTransactionHandle transaction)
    {
        WrittenPartitions written = changes.get(transaction).written();
        try {
            hive.commit(transaction);
        }
        finally {
            end(transaction);
        }
        if (settings.refreshAfterWrite() && settings.elsewhere().isEmpty()) {
            written.partitions().forEach(refreshes::add);
        }
    }

    @Override
    public void rollback(ConnectorTransactionHandle transaction)
    {
        try {
            hive.rollback(transaction);
        }
        finally {
            end(transaction);
        }
    }

    /** What was changed counts from the end. */
    private void end(ConnectorTransactionHandle transaction)
    {
        bridge.commit(transaction);
        changes.remove(transaction).tables().forEach(recent::add);
    }

    @Override
    public ConnectorSplitManager getSplitManager()
    {
        return new BothSplits(bridge.getSplitManager(), hive.getSplitManager(), this::handleToRead);
    }

    /** Of the tables that a transaction changes a statement reads natively only those that it writes itself, and these as they are. */
    private BridgeTableHandle handleToRead(ConnectorTransactionHandle transaction, BridgeTableHandle table)
    {
        return changes.get(transaction).tables().contains(table.name()) ? table.fresh() : table;
    }

    @Override
    public ConnectorPageSourceProviderFactory getPageSourceProviderFactory()
    {
        return () -> new BothPageSources(bridge.getPageSourceProviderFactory().createPageSourceProvider(), hive.getPageSourceProvider());
    }

    @Override
    public ConnectorPageSinkProvider getPageSinkProvider()
    {
        return hive.getPageSinkProvider();
    }

    @Override
    public ConnectorNodePartitioningProvider getNodePartitioningProvider()
    {
        return hive.getNodePartitioningProvider();
    }

    @Override
    public Set<Procedure> getProcedures()
    {
        return hive.getProcedures().stream().map(procedure -> TableProcedures.follow(procedure, recent::add)).collect(toUnmodifiableSet());
    }

    @Override
    public Set<TableProcedureMetadata> getTableProcedures()
    {
        return hive.getTableProcedures();
    }

    @Override
    public Set<ConnectorTableFunction> getTableFunctions()
    {
        return settings.elsewhere().isPresent() ? Set.of() : bridge.getTableFunctions();
    }

    @Override
    public List<PropertyMetadata<?>> getSessionProperties()
    {
        return sessionProperties;
    }

    @Override
    public List<PropertyMetadata<?>> getSchemaProperties()
    {
        return hive.getSchemaProperties();
    }

    @Override
    public List<PropertyMetadata<?>> getAnalyzeProperties()
    {
        return hive.getAnalyzeProperties();
    }

    @Override
    public List<PropertyMetadata<?>> getTableProperties()
    {
        return hive.getTableProperties();
    }

    @Override
    public List<PropertyMetadata<?>> getViewProperties()
    {
        return hive.getViewProperties();
    }

    @Override
    public List<PropertyMetadata<?>> getMaterializedViewProperties()
    {
        return hive.getMaterializedViewProperties();
    }

    @Override
    public List<PropertyMetadata<?>> getColumnProperties()
    {
        return hive.getColumnProperties();
    }

    @Override
    public ConnectorAccessControl getAccessControl()
    {
        return hive.getAccessControl();
    }

    @Override
    public boolean isSingleStatementWritesOnly()
    {
        return hive.isSingleStatementWritesOnly();
    }

    @Override
    public Set<ConnectorCapabilities> getCapabilities()
    {
        return hive.getCapabilities();
    }

    @Override
    public void shutdown()
    {
        refreshes.close();
        try {
            hive.shutdown();
        }
        finally {
            bridge.shutdown();
        }
    }
}
