package io.skipbridge.trino.suites;

import com.google.inject.Key;
import io.trino.Session;
import io.trino.plugin.tpch.TpchPlugin;
import io.trino.server.PluginInstaller;
import io.trino.server.testing.TestingTrinoServer;
import io.trino.testing.DistributedQueryRunner;

import java.util.Map;

import static io.trino.testing.TestingSession.testSessionBuilder;

/**
 * Starts three nodes of Trino over the planner and the tables of the test that runs these suites.
 * Every node loads the built plugin directory as a server does: from plugin.dir, through a class loader of its own.
 */
final class Suites
{
    /** Each table is one file, and the index knows it. */
    static final String ONE_FILE = "one_file";
    /** Partitioned and of many files; the index knows about half of them. */
    static final String LAKE = "lake";

    private static final int WORKERS = 2;

    private Suites() {}

    static DistributedQueryRunner start(String schema)
            throws Exception
    {
        return start(schema, Map.of());
    }

    static DistributedQueryRunner start(String schema, Map<String, String> properties)
            throws Exception
    {
        Session session = testSessionBuilder().setCatalog("bridge").setSchema(schema).build();
        DistributedQueryRunner runner = DistributedQueryRunner.builder(session)
                .setWorkerCount(WORKERS)
                .addExtraProperty("plugin.dir", setting("plugins"))
                .addExtraProperties(properties)
                .build();
        try {
            runner.installPlugin(new TpchPlugin());
            runner.createCatalog("tpch", "tpch", Map.of());
            for (TestingTrinoServer server : runner.getServers()) {
                server.getInstance(Key.get(PluginInstaller.class)).loadPlugins();
            }
            runner.createCatalog("bridge", "skipbridge", Map.of(
                    "skipbridge.planner", setting("planner"),
                    // suites count what joins' filters leave: a slow machine is no failure
                    "skipbridge.dynamic-filter-wait", "1h"));
            return runner;
        }
        catch (Throwable e) {
            runner.close();
            throw e;
        }
    }

    /** A system property of these suites, without its prefix. */
    static String setting(String name)
    {
        String value = System.getProperty("skipbridge." + name);
        if (value == null) {
            throw new IllegalStateException("skipbridge.%s is not set: run tests/engines/test_trino_suites.py, which starts what these suites need".formatted(name));
        }
        return value;
    }
}
