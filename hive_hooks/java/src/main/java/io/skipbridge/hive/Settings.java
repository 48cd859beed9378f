package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;

import java.net.InetSocketAddress;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/**
 * Settings. An invalid value is reported by name, and the scan reads all files.
 *
 * <p>Hive writes the properties of a table into the job that reads it, where the next table finds them too. So what decides whom to ask is read from
 * this JVM's own hive-site.xml, or from what the hook or a storage handler has put into the plan. A session may switch skipping off, and wait less.
 */
final class Settings
{
    static final String PLANNER = "skipbridge.planner";
    static final String TIMEOUT = "skipbridge.planner.timeout.ms";
    static final String PRUNING = "skipbridge.pruning_enabled";
    static final String SEGMENTS = "skipbridge.segments";
    static final String REFRESH = "skipbridge.hook.refresh.ms";
    /** In hive-site.xml alone: whether sessions choose the planner, as for trials. */
    static final String BY_SESSION = "skipbridge.planner.by_session";

    private static final String PLAN = "hive.exec.plan";

    private static final String DEFAULT_PLANNER = "127.0.0.1:9527";
    private static final int DEFAULT_TIMEOUT = 2000;
    private static final int DEFAULT_REFRESH = 10_000;
    private static final int LEAST_REFRESH = 100;

    private Settings() {}

    static boolean pruning(Configuration configuration)
    {
        return configuration.getBoolean(PRUNING, true);
    }

    /** This server's own, once it was read. */
    private static final class Site
    {
        static final Configuration READ = new HiveConf();
    }

    private static boolean bySession(Configuration site)
    {
        return site.getBoolean(BY_SESSION, false);
    }

    /** Whom a session asks; the address is unresolved. */
    static InetSocketAddress planner(Configuration session)
    {
        return address(planner(session, Site.READ));
    }

    static String planner(Configuration session, Configuration site)
    {
        String own = site.getTrimmed(PLANNER, DEFAULT_PLANNER);
        return bySession(site) ? session.getTrimmed(PLANNER, own) : own;
    }

    /** Whom a scan asks; the address is unresolved. */
    static InetSocketAddress planner(JobConf job)
    {
        String told = told(job);
        return address(told.isEmpty() ? planner(tablesChoose(job) ? Site.READ : job, site(job)) : told.substring(0, told.indexOf(' ')));
    }

    /** How long a scan waits. */
    static int timeoutMillis(JobConf job)
    {
        String told = told(job);
        return told.isEmpty() ? timeoutMillis(tablesChoose(job) ? Site.READ : job, site(job)) : Integer.parseInt(told.substring(told.indexOf(' ') + 1));
    }

    /** What descriptors carry to tasks, which may run where there is no hive-site.xml. */
    static String toTell(Configuration session)
    {
        InetSocketAddress address = planner(session);
        return address.getHostString() + ":" + address.getPort() + " " + timeoutMillis(session);
    }

    /** Puts it into the job properties of a descriptor. */
    static TableDesc told(TableDesc table, String toTell)
    {
        TableDesc copy = (TableDesc) table.clone();
        Map<String, String> properties = table.getJobProperties() == null ? new HashMap<>() : new HashMap<>(table.getJobProperties());
        properties.put(SkipFilesHook.TOLD, toTell);
        copy.setJobProperties(properties);
        return copy;
    }

    /** By the descriptors of the directories that the job lists: what other tables of the work carry may be their owners' words. */
    private static String told(JobConf job)
    {
        Map<Path, PartitionDesc> known = work(job);
        for (Path path : known.isEmpty() ? new Path[0] : FileInputFormat.getInputPaths(job)) {
            PartitionDesc read = known.get(path);
            Map<String, String> properties = read == null ? null : read.getTableDesc().getJobProperties();
            if (properties != null && properties.containsKey(SkipFilesHook.TOLD)) {
                return properties.get(SkipFilesHook.TOLD);
            }
        }
        return "";
    }

    /** A task of a hooked record may run where there is no hive-site.xml: then its job has what the server sent, unless a table has such settings. */
    private static Configuration site(JobConf job)
    {
        return HiveConf.getHiveSiteLocation() == null && !work(job).isEmpty() && !tablesChoose(job) ? job : Site.READ;
    }

    private static boolean tablesChoose(JobConf job)
    {
        return work(job).values().stream().anyMatch(read -> choose(read.getTableDesc().getProperties()) || choose(read.getProperties()));
    }

    private static boolean choose(Properties of)
    {
        return of != null && (of.containsKey(PLANNER) || of.containsKey(TIMEOUT));
    }

    private static Map<Path, PartitionDesc> work(JobConf job)
    {
        MapWork work = job.get(PLAN) == null ? null : Utilities.getMapWork(job);
        return work == null ? Collections.emptyMap() : work.getPathToPartitionInfo();
    }

    /** Unresolved. */
    static InetSocketAddress address(String text)
    {
        int colon = text.lastIndexOf(':');
        String host = colon < 0 ? "" : text.substring(0, colon).replaceAll("^\\[|]$", "");
        try {
            int port = Integer.parseInt(text.substring(colon + 1));
            if (!host.isEmpty() && port > 0 && port < 65536) {
                return InetSocketAddress.createUnresolved(host, port);
            }
        }
        catch (NumberFormatException e) {
            // reported below with the whole text
        }
        throw new IllegalArgumentException(PLANNER + " is '" + text + "', not host:port");
    }

    /** The segments that a session reads of some tables; empty: all. */
    static String segments(Configuration session)
    {
        return session.getTrimmed(SEGMENTS, "");
    }

    /** How long a session waits: no longer than the server's own time-out, which is also the one that tells of a planner that does not run. */
    static int timeoutMillis(Configuration session)
    {
        return timeoutMillis(session, Site.READ);
    }

    static int timeoutMillis(Configuration session, Configuration site)
    {
        int own = timeoutOf(site);
        int asked = positive(session, TIMEOUT, own);
        return bySession(site) ? asked : Math.min(own, asked);
    }

    /** How long the server itself waits. */
    static int timeoutMillis()
    {
        return timeoutOf(Site.READ);
    }

    /** Whether a call that came to its end so tells of the planner, not of a session's haste. */
    static boolean isWhole(int timeoutMillis)
    {
        return timeoutMillis >= timeoutOf(Site.READ);
    }

    private static int timeoutOf(Configuration site)
    {
        return positive(site, TIMEOUT, DEFAULT_TIMEOUT);
    }

    /** How often the hook asks which tables have an index. */
    static int refreshMillis(Configuration session)
    {
        return Math.max(LEAST_REFRESH, positive(bySession(Site.READ) ? session : Site.READ, REFRESH, DEFAULT_REFRESH));
    }

    private static int positive(Configuration configuration, String name, int otherwise)
    {
        String text = configuration.getTrimmed(name, "");
        int millis = 0;
        try {
            millis = text.isEmpty() ? otherwise : Integer.parseInt(text);
        }
        catch (NumberFormatException e) {
            // reported below by name
        }
        if (millis < 1) {
            throw new IllegalArgumentException(name + " is '" + text + "', not a positive number of milliseconds");
        }
        return millis;
    }
}
