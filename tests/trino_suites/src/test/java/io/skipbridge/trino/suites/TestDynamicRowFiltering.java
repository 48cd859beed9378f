package io.skipbridge.trino.suites;

import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.SchemaTableName;
import io.trino.testing.AbstractTestDynamicRowFiltering;
import io.trino.testing.QueryRunner;

public class TestDynamicRowFiltering
        extends AbstractTestDynamicRowFiltering
{
    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.ONE_FILE);
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
}
