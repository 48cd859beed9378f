package io.skipbridge.hive;

import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.hive.wire.IndexedTables;
import io.skipbridge.hive.wire.PlannerClient;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.mapred.InputFormat;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What the planner says about the tables that queries read: which have an index. A query asks only about tables that no query read before; in the
 * background all are asked about again, soon if the planner has not decided about some. Tables and planners that no query used for some time are
 * forgotten.
 *
 * <p>Never throws for a planner that fails: its tables are then unknown, or as they were known last.
 */
final class KnownTables
{
    static final KnownTables SHARED = new KnownTables();

    private static final Logger log = LoggerFactory.getLogger(KnownTables.class);
    private static final int MOST_IN_A_CALL = 1000;
    private static final long FORGOTTEN_NANOS = TimeUnit.MINUTES.toNanos(10);
    private static final long UNDECIDED_MILLIS = 500;
    private static final int MOST_PLANNERS = 64;
    // Of a table without an index.
    private static final String NOWHERE = "";

    private final CircuitBreaker breaker = new CircuitBreaker(TimeUnit.SECONDS.toNanos(30), System::nanoTime);
    private final Map<String, Planner> planners = new ConcurrentHashMap<>();
    private final ScheduledExecutorService refreshing = inBackground();

    /** One planner's answers. */
    private static final class Planner
    {
        private final InetSocketAddress address;
        private final Map<String, String> locations = new ConcurrentHashMap<>();
        private final Map<String, Long> used = new ConcurrentHashMap<>();
        private final Set<String> undecided = ConcurrentHashMap.newKeySet();
        private final AtomicBoolean asksSoon = new AtomicBoolean();
        private volatile Map<String, String> inputFormats = Collections.emptyMap();
        private ScheduledFuture<?> refresh;

        Planner(InetSocketAddress address)
        {
            this.address = address;
        }

        @Override
        public String toString()
        {
            return address.getHostString() + ":" + address.getPort();
        }
    }

    /** What is known about the tables of one query. */
    static final class Answer
    {
        private final Map<String, String> locations;
        private final Map<String, String> inputFormats;

        Answer(Map<String, String> locations, Map<String, String> inputFormats)
        {
            this.locations = locations;
            this.inputFormats = inputFormats;
        }

        /**
         * The class to read a partition with; null if it stays as it is. That is so for tables without an index or at another place, and for
         * partitions of another format than the table's, of buckets or of archives.
         *
         * @param classes by input format, filled by this method
         */
        Class<? extends InputFormat> inputFormat(PartitionDesc partition, Map<Class<?>, Class<? extends InputFormat>> classes)
        {
            TableDesc table = partition.getTableDesc();
            String location = locations.get(PlannedScans.name(table));
            Class<? extends InputFormat> read = partition.getInputFileFormatClass();
            if (location == null || location.isEmpty() || read == null || table.getInputFileFormatClass() == null) {
                return null;
            }
            if (!location.equals(location(table)) || isLeftAlone(partition.getProperties()) || isLeftAlone(table.getProperties())) {
                return null;
            }
            String ours = inputFormats.get(read.getName());
            if (ours == null
                    || !ours.equals(inputFormats.get(table.getInputFileFormatClass().getName()))
                    || !String.valueOf(partition.getSerdeClassName()).equals(table.getSerdeClassName())) {
                return null;
            }
            return classes.computeIfAbsent(read, original -> loaded(ours, original));
        }

        private static Class<? extends InputFormat> loaded(String name, Class<?> original)
        {
            try {
                Class<? extends InputFormat> found = Class.forName(name, true, KnownTables.class.getClassLoader()).asSubclass(InputFormat.class);
                return original.isAssignableFrom(found) ? found : null;
            }
            catch (ClassNotFoundException | ClassCastException | LinkageError e) {
                // The planner is newer than this jar, or the format's own classes are missing.
                log.debug("skipbridge: {} cannot be loaded", name, e);
                return null;
            }
        }

        private static String location(TableDesc table)
        {
            String location = table.getProperties().getProperty("location");
            return location == null ? NOWHERE : trimmed(CanonicalPath.of(new Path(location)));
        }

        /** Bucket joins number files by their place in the listing. */
        private static boolean isLeftAlone(Properties properties)
        {
            String buckets = properties.getProperty("bucket_count", "-1").trim();
            return !(buckets.equals("-1") || buckets.equals("0")) || Boolean.parseBoolean(properties.getProperty("is_archived"));
        }
    }

    /** One thread, which ends while there is nothing to ask. It keeps no session's class loader. */
    static ScheduledExecutorService inBackground()
    {
        ScheduledThreadPoolExecutor one = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "skipbridge-background");
            thread.setDaemon(true);
            thread.setContextClassLoader(KnownTables.class.getClassLoader());
            return thread;
        });
        one.setKeepAliveTime(1, TimeUnit.MINUTES);
        one.allowCoreThreadTimeOut(true);
        one.setRemoveOnCancelPolicy(true);
        return one;
    }

    Answer of(Configuration configuration, Collection<String> tables)
    {
        Planner planner = planner(configuration);
        if (planner == null) {
            return new Answer(Collections.emptyMap(), Collections.emptyMap());
        }
        long now = System.nanoTime();
        List<String> unknown = new ArrayList<>();
        for (String table : tables) {
            planner.used.put(table, now);
            if (!planner.locations.containsKey(table)) {
                unknown.add(table);
            }
        }
        ask(planner, unknown, Settings.timeoutMillis(configuration), true);
        return new Answer(planner.locations, planner.inputFormats);
    }

    /** Null if sessions chose too many. */
    private Planner planner(Configuration configuration)
    {
        InetSocketAddress address = Settings.planner(configuration);
        int refreshMillis = Settings.refreshMillis(configuration);
        String key = address.getHostString() + ":" + address.getPort() + "/" + refreshMillis;
        if (planners.size() >= MOST_PLANNERS && !planners.containsKey(key)) {
            return null;
        }
        return planners.computeIfAbsent(key, k -> {
            Planner made = new Planner(address);
            made.refresh = refreshing.scheduleWithFixedDelay(() -> refresh(k, made), refreshMillis, refreshMillis, TimeUnit.MILLISECONDS);
            return made;
        });
    }

    private void refresh(String key, Planner planner)
    {
        try {
            long now = System.nanoTime();
            planner.used.values().removeIf(at -> now - at > FORGOTTEN_NANOS);
            planner.locations.keySet().retainAll(planner.used.keySet());
            if (planner.used.isEmpty()) {
                planners.remove(key);
                planner.refresh.cancel(false);
                return;
            }
            ask(planner, new ArrayList<>(planner.used.keySet()), Settings.timeoutMillis(), false);
        }
        catch (RuntimeException | Error e) {
            // whatever a turn throws would end all later ones
            log.debug("skipbridge: tables are not asked about", e);
        }
    }

    /** @param ofQuery whether a query waits: only then a failure is worth a warning */
    private void ask(Planner planner, List<String> tables, int timeoutMillis, boolean ofQuery)
    {
        String what = Settings.isWhole(timeoutMillis) ? planner.toString() : planner + "/" + timeoutMillis;
        for (int from = 0; from < tables.size(); from += MOST_IN_A_CALL) {
            if (breaker.open(planner.toString()) || breaker.open(what)) {
                Hooks.COUNTERS.callsSpared.increment();
                return;
            }
            List<String> some = tables.subList(from, Math.min(tables.size(), from + MOST_IN_A_CALL));
            try {
                IndexedTables found = new PlannerClient(planner.address, timeoutMillis).listIndexedTables(some);
                breaker.succeeded(planner.toString());
                breaker.succeeded(what);
                planner.inputFormats = new HashMap<>(found.inputFormats());
                for (String table : some) {
                    if (found.undecided().contains(table)) {
                        planner.locations.putIfAbsent(table, NOWHERE);
                    }
                    else {
                        planner.locations.put(table, trimmed(found.locations().getOrDefault(table, NOWHERE)));
                    }
                }
                if (!found.undecided().isEmpty()) {
                    askSoon(planner, found.undecided());
                }
            }
            catch (IOException e) {
                broken(ofQuery, what, "the planner at " + planner + " does not answer: " + e,
                        "start it (skipbridge serve), or set " + Settings.PLANNER + " to its address");
            }
            catch (ProtocolException e) {
                broken(ofQuery, planner.toString(), "what answers at " + planner + " is no planner of this version of the hooks: " + e.getMessage(),
                        "take jar and planner from one release");
            }
            catch (BridgeFailure e) {
                broken(ofQuery, planner.toString(), e.code() + ": " + e.getMessage(), e.remedy());
            }
        }
    }

    /** Queries wait for no second answer about a table: this one comes in the background, unless the table was forgotten. */
    private void askSoon(Planner planner, List<String> undecided)
    {
        planner.undecided.addAll(undecided);
        if (planner.asksSoon.compareAndSet(false, true)) {
            boolean scheduled = false;
            try {
                refreshing.schedule(() -> {
                    planner.asksSoon.set(false);
                    List<String> asked = new ArrayList<>(planner.undecided);
                    planner.undecided.removeAll(asked);
                    asked.retainAll(planner.used.keySet());
                    ask(planner, asked, Settings.timeoutMillis(), false);
                }, UNDECIDED_MILLIS, TimeUnit.MILLISECONDS);
                scheduled = true;
            }
            finally {
                if (!scheduled) {
                    planner.asksSoon.set(false);
                }
            }
        }
    }

    private void broken(boolean ofQuery, String planner, String why, String remedy)
    {
        if (!ofQuery) {
            log.debug("skipbridge: known tables stay as they are: {}", why);
            return;
        }
        Hooks.COUNTERS.failures.increment();
        if (breaker.failed(planner)) {
            log.warn("skipbridge: tables are read without skipping files: {} -> {} (told again after 30 s)", why, remedy);
        }
    }

    private static String trimmed(String location)
    {
        return location.endsWith("/") ? location.substring(0, location.length() - 1) : location;
    }
}
