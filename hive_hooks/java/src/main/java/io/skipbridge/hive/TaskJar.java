package io.skipbridge.hive;

import org.apache.hadoop.hive.conf.HiveConf;

import java.io.File;
import java.net.URI;
import java.security.CodeSource;

/** Lets the tasks of a query load the hooks' classes. */
final class TaskJar
{
    private TaskJar() {}

    /**
     * Whether the tasks of this query will find the classes. The jar is added to the jars that the query ships, unless its tasks run in this JVM. A
     * class that lies in no jar cannot be shipped, and LLAP's daemons take no jars of a query.
     */
    static boolean reachesTasks(HiveConf configuration)
    {
        boolean tez = "tez".equals(HiveConf.getVar(configuration, HiveConf.ConfVars.HIVE_EXECUTION_ENGINE));
        if (tez && configuration.getBoolean("tez.local.mode", false)) {
            return true;
        }
        File jar = own();
        if (jar == null) {
            return false;
        }
        String shipped = configuration.getAuxJars();
        if (shipped != null && (shipped.endsWith("/" + jar.getName()) || shipped.contains("/" + jar.getName() + ","))) {
            return true;
        }
        if ("llap".equals(configuration.get("hive.execution.mode"))) {
            return false;
        }
        String uri = jar.toURI().toString();
        if (uri.contains("%") || uri.contains(",")) {
            return false; // Tez takes it for a path, MapReduce for a URI, both split at commas
        }
        configuration.setAuxJars(shipped == null || shipped.isEmpty() ? uri : shipped + "," + uri);
        return true;
    }

    private static File own()
    {
        try {
            CodeSource source = TaskJar.class.getProtectionDomain().getCodeSource();
            URI location = source == null ? null : source.getLocation().toURI();
            File file = location == null ? null : new File(location);
            return file != null && file.isFile() && file.getName().endsWith(".jar") ? file : null;
        }
        catch (Exception e) {
            return null;
        }
    }
}
