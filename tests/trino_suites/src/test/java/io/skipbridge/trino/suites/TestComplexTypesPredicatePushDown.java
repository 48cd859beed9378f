package io.skipbridge.trino.suites;

import io.trino.testing.BaseComplexTypesPredicatePushDownTest;
import io.trino.testing.QueryRunner;

public class TestComplexTypesPredicatePushDown
        extends BaseComplexTypesPredicatePushDownTest
{
    private final TableMaker tables = new TableMaker();

    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.ONE_FILE);
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
}
