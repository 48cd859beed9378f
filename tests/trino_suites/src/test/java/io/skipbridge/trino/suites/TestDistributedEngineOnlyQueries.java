package io.skipbridge.trino.suites;

import io.trino.testing.AbstractDistributedEngineOnlyQueries;
import io.trino.testing.QueryRunner;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

public class TestDistributedEngineOnlyQueries
        extends AbstractDistributedEngineOnlyQueries
{
    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.ONE_FILE);
    }

    @Test
    @Disabled("It inserts, and the connector is read-only")
    @Override
    public void testInsertWithCoercion() {}

    @Test
    @Disabled("It creates a table, and the connector is read-only")
    @Override
    public void testCreateTableAsTable() {}

    @Test
    @Disabled("It creates a table, and the connector is read-only")
    @Override
    public void testInsertTableIntoTable() {}

    @Test
    @Disabled("It creates a table, and the connector is read-only")
    @Override
    public void testImplicitCastToRowWithFieldsRequiringDelimitation() {}

    @Test
    @Disabled("The engine's own tests bind the properties that it sets; no connector is asked")
    @Override
    public void testSetSession() {}

    @Test
    @Disabled("The engine's own tests bind the properties that it sets; no connector is asked")
    @Override
    public void testResetSession() {}

    @Test
    @Disabled("The engine's own tests bind the properties that it sets; no connector is asked")
    @Override
    public void testShowSession() {}
}
