package io.skipbridge.trino.suites;

import io.trino.testing.AbstractTestAggregations;
import io.trino.testing.QueryRunner;

public class TestAggregations
        extends AbstractTestAggregations
{
    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.ONE_FILE);
    }
}
