package io.skipbridge.trino.metadata;

import io.skipbridge.trino.Planners;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplit;
import io.trino.spi.connector.ConnectorTableMetadata;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.RecordCursor;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.connector.SystemTable;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A system table of the planner: the files, partitions or indexes of a table, fetched page by page. */
final class BridgeSystemTable
        implements SystemTable
{
    private final Planners planners;
    private final SchemaTableName name;
    private final SystemTableKind kind;
    private final String readVersion;

    BridgeSystemTable(Planners planners, SchemaTableName name, SystemTableKind kind, String readVersion)
    {
        this.readVersion = readVersion;
        this.planners = planners;
        this.name = name;
        this.kind = kind;
    }

    @Override
    public Distribution getDistribution()
    {
        return Distribution.SINGLE_COORDINATOR;
    }

    @Override
    public ConnectorTableMetadata getTableMetadata()
    {
        return new ConnectorTableMetadata(name, kind.columns());
    }

    @Override
    public RecordCursor cursor(ConnectorTransactionHandle transaction, ConnectorSession session, TupleDomain<Integer> constraint)
    {
        return cursor(transaction, session, constraint, IntStream.range(0, kind.columns().size()).boxed().collect(Collectors.toSet()), null);
    }

    @Override
    public RecordCursor cursor(
            ConnectorTransactionHandle transaction, ConnectorSession session, TupleDomain<Integer> constraint, Set<Integer> requiredColumns, ConnectorSplit split)
    {
        List<String> wanted = requiredColumns.stream().sorted().map(index -> kind.columns().get(index).getName()).toList();
        return new SystemCursor(planners, session.getQueryId(), kind.base(name), kind, wanted, readVersion);
    }
}
