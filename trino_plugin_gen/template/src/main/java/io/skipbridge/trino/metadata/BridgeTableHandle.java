package io.skipbridge.trino.metadata;

import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.OptionalLong;

import static java.util.Objects.requireNonNull;

/**
 * A table and what is known of the query's predicate on it: a conjunction of {@code predicate} and of {@code conjuncts}, which are
 * expressions in their wire form. The engine keeps the whole predicate; this one only leaves out files and row groups.
 */
public record BridgeTableHandle(
        String schemaName,
        String tableName,
        TupleDomain<BridgeColumnHandle> predicate,
        List<String> conjuncts,
        OptionalLong limit)
        implements ConnectorTableHandle
{
    public BridgeTableHandle
    {
        requireNonNull(schemaName, "schemaName is null");
        requireNonNull(tableName, "tableName is null");
        requireNonNull(predicate, "predicate is null");
        conjuncts = List.copyOf(conjuncts);
        requireNonNull(limit, "limit is null");
    }

    static BridgeTableHandle all(SchemaTableName name)
    {
        return new BridgeTableHandle(name.getSchemaName(), name.getTableName(), TupleDomain.all(), List.of(), OptionalLong.empty());
    }

    SchemaTableName name()
    {
        return new SchemaTableName(schemaName, tableName);
    }

    public boolean unfiltered()
    {
        return predicate.isAll() && conjuncts.isEmpty();
    }

    BridgeTableHandle withPredicate(TupleDomain<BridgeColumnHandle> newPredicate, List<String> newConjuncts)
    {
        return new BridgeTableHandle(schemaName, tableName, newPredicate, newConjuncts, limit);
    }

    BridgeTableHandle withLimit(long newLimit)
    {
        return new BridgeTableHandle(schemaName, tableName, predicate, conjuncts, OptionalLong.of(newLimit));
    }

    @Override
    public String toString()
    {
        StringBuilder text = new StringBuilder(schemaName).append('.').append(tableName);
        if (!predicate.isAll()) {
            text.append(" constraint on ").append(predicate.getDomains().map(domains -> domains.keySet().stream().map(BridgeColumnHandle::name).toList().toString()).orElse("[none]"));
        }
        if (!conjuncts.isEmpty()) {
            text.append(" and ").append(conjuncts.size()).append(" expressions");
        }
        limit.ifPresent(value -> text.append(" limit ").append(value));
        return text.toString();
    }
}
