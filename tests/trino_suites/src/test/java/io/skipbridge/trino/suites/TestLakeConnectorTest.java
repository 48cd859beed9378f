package io.skipbridge.trino.suites;

import io.trino.testing.MaterializedResult;
import io.trino.testing.QueryRunner;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.assertj.core.api.Assertions.assertThat;

public class TestLakeConnectorTest
        extends TestSkipbridgeConnectorTest
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

    // The partition key is the last column here, and said to be one.
    @Override
    protected MaterializedResult getDescribeOrdersResult()
    {
        return MaterializedResult.resultBuilder(getSession(), VARCHAR, VARCHAR, VARCHAR, VARCHAR)
                .row("orderkey", "bigint", "", "")
                .row("custkey", "bigint", "", "")
                .row("totalprice", "double", "", "")
                .row("orderdate", "date", "", "")
                .row("orderpriority", "varchar(15)", "", "")
                .row("clerk", "varchar(15)", "", "")
                .row("shippriority", "integer", "", "")
                .row("comment", "varchar(79)", "", "")
                .row("orderstatus", "varchar(1)", "partition key", "")
                .build();
    }

    // The suite expects another order of columns.
    @Test
    @Override
    public void testShowColumns()
    {
        assertThat(query("SHOW COLUMNS FROM orders")).result().matches(getDescribeOrdersResult());
    }

    // The suite expects another order of columns.
    @Test
    @Override
    public void testShowCreateTable()
    {
        assertThat((String) computeScalar("SHOW CREATE TABLE orders")).contains(
                """
                   comment varchar(79),
                   orderstatus varchar(1)
                """);
    }

    @Override
    protected void verifyVersionedQueryFailurePermissible(Exception e)
    {
        assertThat(e).hasMessageMatching("(?s).*(keeps no older versions|A version of a table is a text or a whole number).*");
    }
}
