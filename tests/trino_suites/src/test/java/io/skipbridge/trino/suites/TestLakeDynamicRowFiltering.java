package io.skipbridge.trino.suites;

import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.SchemaTableName;
import io.trino.sql.planner.OptimizerConfig.JoinDistributionType;
import io.trino.testing.AbstractTestDynamicRowFiltering;
import io.trino.testing.QueryRunner;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Over the lake alone: the engine hands a worker its filters while it hands it splits,
 * so of a table that is one split it may filter nothing, whatever the connector does.
 */
public class TestLakeDynamicRowFiltering
        extends AbstractTestDynamicRowFiltering
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

    /** The suite expects the schema's name to be tpch; the handle's class is known to the plugin's class loader alone. */
    @Override
    protected SchemaTableName getSchemaTableName(ConnectorTableHandle handle)
    {
        try {
            return new SchemaTableName("tpch", (String) handle.getClass().getMethod("tableName").invoke(handle));
        }
        catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    // The suite joins by nationkey, which is a partition key here: all rows of the files that are left match.
    @Test
    @Override
    public void testJoinWithSelectiveRowFiltering()
    {
        for (JoinDistributionType distribution : JoinDistributionType.values()) {
            assertRowFiltering(
                    "SELECT * FROM orders o, customer c WHERE o.custkey = c.custkey AND c.name = 'Customer#000000001'",
                    distribution,
                    "orders");
        }
    }

    // The second join is by nationkey in the suite; see above.
    @Test
    @Override
    public void testJoinWithMultipleDynamicFilters()
    {
        for (JoinDistributionType distribution : JoinDistributionType.values()) {
            assertNoRowFiltering(
                    "SELECT a.* FROM customer a INNER JOIN customer b ON a.nationkey = b.nationkey AND a.mktsegment = b.mktsegment",
                    distribution,
                    "customer");
            assertRowFiltering(
                    "SELECT * FROM (" +
                            "SELECT a.* FROM orders a INNER JOIN orders b ON a.orderpriority = b.orderpriority AND a.orderkey = b.orderkey) o" +
                            " INNER JOIN customer c ON o.custkey = c.custkey AND c.name = 'Customer#000000001'",
                    distribution,
                    "orders");
        }
    }
}
