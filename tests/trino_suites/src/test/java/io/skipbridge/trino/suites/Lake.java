package io.skipbridge.trino.suites;

import io.trino.testing.AbstractTestQueryFramework;
import org.jdbi.v3.core.Handle;

import java.lang.reflect.Field;
import java.util.Map;

/**
 * What suites compare with, for the lake: Hive puts partition keys after all other columns, so H2's tables must have them there too
 * where a suite says SELECT *. The suites keep their H2 to themselves: it is reached by reflection.
 */
final class Lake
{
    /** As LAKE_KEYS in suite_tables.py. */
    private static final Map<String, String> KEYS = Map.of(
            "customer", "nationkey",
            "lineitem", "shipmode",
            "nation", "regionkey",
            "orders", "orderstatus",
            "part", "brand");

    private Lake() {}

    static void moveKeys(AbstractTestQueryFramework suite)
    {
        Object h2 = read(AbstractTestQueryFramework.class, "h2QueryRunner", suite);
        Handle handle = (Handle) read(h2.getClass(), "handle", h2);
        KEYS.forEach((table, key) -> {
            // A column added is the last one; it takes the other's place and then its name.
            String type = handle.createQuery("SELECT data_type_sql('PUBLIC', upper('%s'), 'TABLE', dtd_identifier) FROM information_schema.columns WHERE table_name = upper('%s') AND column_name = upper('%s')".formatted(table, table, key))
                    .mapTo(String.class)
                    .one();
            handle.execute("ALTER TABLE %s ADD COLUMN moved %s".formatted(table, type));
            handle.execute("UPDATE %s SET moved = %s".formatted(table, key));
            handle.execute("ALTER TABLE %s DROP COLUMN %s".formatted(table, key));
            handle.execute("ALTER TABLE %s ALTER COLUMN moved RENAME TO %s".formatted(table, key));
        });
    }

    private static Object read(Class<?> type, String name, Object object)
    {
        try {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(object);
        }
        catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
