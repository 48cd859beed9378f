package io.skipbridge.trino.suites;

import io.trino.testing.QueryRunner;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

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

    // The suite's max_by has many rows with the same maximum: which it tells depends on the order of files.
    @Test
    @Override
    public void testAggregationUsingOuterTableSymbols()
    {
        assertQuery(
                "SELECT max_by(n.nationkey, n.nationkey + r.regionkey) FROM (SELECT DISTINCT regionkey FROM region) r LEFT JOIN nation n ON n.regionkey = r.regionkey GROUP BY r.regionkey",
                "VALUES 16, 20, 21, 23, 24");
    }
}
