package io.skipbridge.trino.suites;

import io.trino.testing.AbstractTestOrderByQueries;
import io.trino.testing.QueryRunner;

public class TestOrderByQueries
        extends AbstractTestOrderByQueries
{
    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.ONE_FILE);
    }
}
