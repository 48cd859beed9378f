package io.skipbridge.trino.hive;

import io.trino.spi.connector.SchemaTableName;
import org.junit.jupiter.api.Test;

import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestRecentChanges
{
    private static final SchemaTableName TABLE = new SchemaTableName("s", "t");

    @Test
    void testAChangeCountsForItsTableAlone()
    {
        RecentChanges changes = new RecentChanges();
        changes.add(TABLE);
        assertTrue(changes.contains(TABLE, Map.of()));
        assertFalse(changes.contains(new SchemaTableName("s", "u"), Map.of()));
    }

    @Test
    void testADroppedSchemaCountsForAllOfIt()
    {
        RecentChanges changes = new RecentChanges();
        changes.add(RecentChanges.all("s"));
        assertTrue(changes.contains(TABLE, Map.of()));
        assertFalse(changes.contains(new SchemaTableName("other", "t"), Map.of()));
    }

    @Test
    void testAnyFreshnessIsRead()
    {
        RecentChanges changes = new RecentChanges();
        for (String freshness : new String[] {"live", "snapshot", "cached(60s)", "cached( 2h )", "cached()", "cached(soon)"}) {
            assertFalse(changes.contains(TABLE, Map.of("skipbridge.freshness", freshness)), freshness);
        }
        changes.add(TABLE);
        assertTrue(changes.contains(TABLE, Map.of("skipbridge.freshness", "cached(soon)")));
    }
}
