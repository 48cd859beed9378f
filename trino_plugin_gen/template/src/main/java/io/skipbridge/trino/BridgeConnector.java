package io.skipbridge.trino;

import io.skipbridge.trino.metadata.BridgeMetadata;
import io.skipbridge.trino.metadata.TableChangesFunction;
import io.skipbridge.trino.read.BridgePageSourceProviderFactory;
import io.skipbridge.trino.read.ReadSettings;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.BridgeSplitManager;
import io.trino.spi.connector.Connector;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorPageSourceProviderFactory;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplitManager;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.function.table.ConnectorTableFunction;
import io.trino.spi.session.PropertyMetadata;
import io.trino.spi.transaction.IsolationLevel;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

import static io.trino.spi.transaction.IsolationLevel.READ_UNCOMMITTED;
import static io.trino.spi.transaction.IsolationLevel.checkConnectorSupports;

public class BridgeConnector
        implements Connector
{
    private final ConnectorContext context;
    private final Planners planners;
    private final BridgeSplitManager splitManager;
    private final FileOpener files;
    private final String timeZone;
    private final BridgePageSourceProviderFactory pageSources;
    private final List<PropertyMetadata<?>> sessionProperties;
    private final Map<ConnectorTransactionHandle, BridgeMetadata> transactions = new ConcurrentHashMap<>();

    BridgeConnector(String catalog, BridgeConfig config, ConnectorContext context)
    {
        this.context = context;
        this.timeZone = config.timeZone();
        this.planners = new Planners(config.planners(), config.plannerTimeout());
        this.files = openFiles(config.storage(), catalog, context);
        this.splitManager = new BridgeSplitManager(planners, context, files.placement());
        this.pageSources = new BridgePageSourceProviderFactory(files, new ReadSettings(config.orcByName(), config.orcTimeZone(), context.getTypeManager()));
        this.sessionProperties = BridgeSession.properties(config);
    }

    private static FileOpener openFiles(StorageProperties storage, String catalog, ConnectorContext context)
    {
        return FileOpener.create(storage.stores(), storage.properties(), storage.cache(), catalog, context);
    }

    @Override
    public ConnectorTransactionHandle beginTransaction(IsolationLevel isolationLevel, boolean readOnly, boolean autoCommit)
    {
        checkConnectorSupports(READ_UNCOMMITTED, isolationLevel);
        return begin(new BridgeTransaction(UUID.randomUUID()), _ -> OptionalLong.empty());
    }

    /**
     * Begins a transaction of another connector, whose handle it keeps.
     *
     * @param ages milliseconds since that connector may last have changed a table
     */
    public ConnectorTransactionHandle begin(ConnectorTransactionHandle transaction, Function<SchemaTableName, OptionalLong> ages)
    {
        transactions.put(transaction, new BridgeMetadata(planners, context.getTypeManager(), timeZone, ages));
        return transaction;
    }

    /** Asks a planner to bring the index up to date after a write. */
    public void refreshIndex(SchemaTableName table, List<String> partitions)
    {
        // all requests about a table to one process, which joins those that wait
        planners.call(table.toString(), client -> {
            client.refreshIndex(table.getSchemaName(), table.getTableName(), partitions);
            return null;
        });
    }

    @Override
    public BridgeMetadata getMetadata(ConnectorSession session, ConnectorTransactionHandle transaction)
    {
        return transactions.get(transaction);
    }

    @Override
    public void commit(ConnectorTransactionHandle transaction)
    {
        transactions.remove(transaction);
    }

    @Override
    public void rollback(ConnectorTransactionHandle transaction)
    {
        transactions.remove(transaction);
    }

    @Override
    public ConnectorSplitManager getSplitManager()
    {
        return splitManager;
    }

    @Override
    public ConnectorPageSourceProviderFactory getPageSourceProviderFactory()
    {
        return pageSources;
    }

    @Override
    public Set<ConnectorTableFunction> getTableFunctions()
    {
        return Set.of(new TableChangesFunction(transactions::get));
    }

    @Override
    public List<PropertyMetadata<?>> getSessionProperties()
    {
        return sessionProperties;
    }

    @Override
    public void shutdown()
    {
        planners.close();
        files.close();
    }
}
