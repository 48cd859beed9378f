package io.skipbridge.trino.hive;

import io.trino.spi.connector.SchemaTableName;
import org.junit.jupiter.api.Test;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import static org.junit.jupiter.api.Assertions.assertEquals;

class TestRecentChanges
{
    private static final SchemaTableName TABLE = new SchemaTableName("s", "t");
    private static final SchemaTableName OTHER = new SchemaTableName("s", "u");

    private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 5); // a clock may overflow
    private final RecentChanges changes = new RecentChanges(now::get);

    private void pass(long millis)
    {
        now.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
    }

    private long age(SchemaTableName table)
    {
        return changes.age(table).orElseThrow();
    }

    @Test
    void testAChangeCountsForItsTableAlone()
    {
        pass(50);
        changes.add(TABLE);
        pass(7);
        assertEquals(7, age(TABLE));
        assertEquals(57, age(OTHER));
    }

    @Test
    void testADroppedSchemaCountsForAllOfIt()
    {
        pass(50);
        changes.add(RecentChanges.all("s"));
        pass(2);
        assertEquals(2, age(TABLE));
        assertEquals(52, age(new SchemaTableName("other", "t")));
    }

    /** Before the coordinator started, any table may have changed. */
    @Test
    void testAllThatIsNotRememberedCountsAsOfTheStart()
    {
        assertEquals(0, age(TABLE));
        pass(3);
        assertEquals(3, age(TABLE));
    }

    @Test
    void testNoChangeIsForgottenBeforeItIsOlderThanAllThatAreKept()
    {
        changes.add(TABLE);
        for (int day = 0; day < 10; day++) {
            pass(TimeUnit.DAYS.toMillis(1));
            long before = age(TABLE);
            changes.add(OTHER);
            assertEquals(true, age(TABLE) <= before);
            assertEquals(true, age(TABLE) >= TimeUnit.DAYS.toMillis(1));
        }
    }
}
