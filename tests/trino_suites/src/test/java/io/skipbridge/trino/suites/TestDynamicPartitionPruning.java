package io.skipbridge.trino.suites;

import io.trino.testing.BaseDynamicPartitionPruningTest;
import io.trino.testing.QueryRunner;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

import java.util.List;

public class TestDynamicPartitionPruning
        extends BaseDynamicPartitionPruningTest
{
    private final TableMaker tables = new TableMaker();

    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.LAKE, EXTRA_PROPERTIES);
    }

    @Override
    protected void createLineitemTable(String table, List<String> columns, List<String> keys)
    {
        tables.make(getQueryRunner(), table, "SELECT %s FROM tpch.tiny.lineitem".formatted(String.join(", ", columns)), keys);
    }

    @Override
    protected void createPartitionedTable(String table, List<String> columns, List<String> keys)
    {
        tables.declare(table, columns, keys);
    }

    @Override
    protected void createPartitionedAndBucketedTable(String table, List<String> columns, List<String> keys, List<String> buckets)
    {
        throw new UnsupportedOperationException("bucketed tables are read like others");
    }

    @Override
    protected void assertUpdate(String sql)
    {
        tables.update(getQueryRunner(), sql);
    }

    @Override
    protected void assertUpdate(String sql, long count)
    {
        tables.update(getQueryRunner(), sql);
    }

    @Test
    @Disabled("Buckets are not used: a bucketed table is read as the partitioned one that another test makes")
    @Override
    public void testJoinDynamicFilteringMultiJoinOnBucketedTables() {}
}
