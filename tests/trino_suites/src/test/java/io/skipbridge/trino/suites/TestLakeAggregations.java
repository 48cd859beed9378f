package io.skipbridge.trino.suites;

import io.trino.testing.QueryRunner;
import org.junit.jupiter.api.BeforeAll;

public class TestLakeAggregations
        extends TestAggregations
{
    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.LAKE);
    }

    @BeforeAll
    public void moveKeys()
    {
        Lake.moveKeys(this);
    }
}
