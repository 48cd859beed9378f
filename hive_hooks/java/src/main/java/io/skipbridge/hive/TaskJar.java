package io.skipbridge.hive;

import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.hooks.ExecuteWithHookContext;

import java.io.File;
import java.net.URI;
import java.security.CodeSource;

/** Which parts of Hive can load the hooks' classes. */
final class TaskJar
{
    private TaskJar() {}

    /**
     * Whether this class belongs to one session, as with a jar that only {@code hive.aux.jars.path} names. Its loader is closed when the session ends,
     * but Hive keeps input formats, by name, for the sessions after it; and Tez's local tasks never see it.
     */
    static boolean isOfOneSession()
    {
        return isOfOneSession(ExecuteWithHookContext.class.getClassLoader());
    }

    /** @param hives the class loader of Hive's own classes */
    static boolean isOfOneSession(ClassLoader hives)
    {
        try {
            return Class.forName(TaskJar.class.getName(), false, hives) != TaskJar.class;
        }
        catch (ClassNotFoundException | LinkageError e) {
            return true;
        }
    }

    /**
     * Whether the tasks of this query will find the classes. The jar is added to the jars that the query ships, unless its tasks run in this JVM. A
     * class that lies in no jar cannot be shipped, LLAP's daemons take no jars of a query, and MapReduce copies none that lies on the file system of
     * the job.
     */
    static boolean reachesTasks(HiveConf configuration)
    {
        boolean tez = "tez".equals(HiveConf.getVar(configuration, HiveConf.ConfVars.HIVE_EXECUTION_ENGINE));
        if (tez && configuration.getBoolean("tez.local.mode", false)) {
            return true;
        }
        if (!tez && !isCopied(configuration)) {
            return false;
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

    private static boolean isCopied(HiveConf configuration)
    {
        return "local".equals(configuration.get("mapreduce.framework.name", "local"))
                || !"file".equals(FileSystem.getDefaultUri(configuration).getScheme());
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
