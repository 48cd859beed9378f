package io.skipbridge.trino.suites;

import io.trino.testing.AbstractTestWindowQueries;
import io.trino.testing.QueryRunner;

public class TestWindowQueries
        extends AbstractTestWindowQueries
{
    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.ONE_FILE);
    }
}
