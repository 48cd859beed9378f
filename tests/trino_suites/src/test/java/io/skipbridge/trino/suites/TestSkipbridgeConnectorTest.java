package io.skipbridge.trino.suites;

import io.trino.testing.BaseConnectorTest;
import io.trino.testing.QueryRunner;
import io.trino.testing.TestingConnectorBehavior;

import static org.assertj.core.api.Assertions.assertThat;

public class TestSkipbridgeConnectorTest
        extends BaseConnectorTest
{
    @Override
    protected QueryRunner createQueryRunner()
            throws Exception
    {
        return Suites.start(Suites.ONE_FILE);
    }

    @Override
    protected boolean hasBehavior(TestingConnectorBehavior behavior)
    {
        return switch (behavior) {
            // read-only: files are written by others
            case SUPPORTS_INSERT,
                    SUPPORTS_DELETE,
                    SUPPORTS_UPDATE,
                    SUPPORTS_MERGE,
                    SUPPORTS_CREATE_SCHEMA,
                    SUPPORTS_CREATE_TABLE,
                    SUPPORTS_CREATE_VIEW,
                    SUPPORTS_CREATE_MATERIALIZED_VIEW,
                    SUPPORTS_RENAME_TABLE,
                    SUPPORTS_ADD_COLUMN,
                    SUPPORTS_RENAME_COLUMN,
                    SUPPORTS_SET_COLUMN_TYPE,
                    SUPPORTS_COMMENT_ON_TABLE,
                    SUPPORTS_NEGATIVE_DATE -> false;
            // the planner skips files; the engine filters, limits and sorts what is read
            case SUPPORTS_PREDICATE_PUSHDOWN,
                    SUPPORTS_LIMIT_PUSHDOWN,
                    SUPPORTS_TOPN_PUSHDOWN,
                    SUPPORTS_AGGREGATION_PUSHDOWN,
                    SUPPORTS_DEREFERENCE_PUSHDOWN,
                    SUPPORTS_NATIVE_QUERY -> false;
            default -> super.hasBehavior(behavior);
        };
    }

    @Override
    protected void verifyVersionedQueryFailurePermissible(Exception e)
    {
        assertThat(e).hasMessageMatching("(?s).*(keeps no older versions|A version of a table is a text or a whole number).*");
    }
}
