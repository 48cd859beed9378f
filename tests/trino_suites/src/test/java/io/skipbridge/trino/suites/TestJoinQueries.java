package io.skipbridge.trino.suites;

import io.trino.testing.AbstractTestJoinQueries;
import io.trino.testing.QueryRunner;

public class TestJoinQueries
        extends AbstractTestJoinQueries
{
    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.ONE_FILE);
    }
}
