package io.skipbridge.hive;

import org.slf4j.LoggerFactory;

import javax.management.JMException;
import javax.management.ObjectName;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** Counters of this JVM. */
final class Hooks
        implements HooksMXBean
{
    private static final int MOST_KINDS = 100;
    static final Hooks COUNTERS = register(new Hooks());

    final LongAdder calls = new LongAdder();
    final LongAdder cachedAnswers = new LongAdder();
    final LongAdder failures = new LongAdder();
    final LongAdder callsSpared = new LongAdder();
    final LongAdder filesListed = new LongAdder();
    final LongAdder filesSkipped = new LongAdder();
    final LongAdder filesUnnamed = new LongAdder();
    final LongAdder plansChanged = new LongAdder();
    private final Map<String, LongAdder> filesExcluded = new ConcurrentHashMap<>();

    private static Hooks register(Hooks hooks)
    {
        try {
            ManagementFactory.getPlatformMBeanServer().registerMBean(hooks, new ObjectName("io.skipbridge.hive:type=Hooks"));
        }
        catch (JMException e) {
            // The jar was loaded twice (ADD JAR). The counters of the first one are shown.
            LoggerFactory.getLogger(Hooks.class).debug("counters are not shown", e);
        }
        return hooks;
    }

    /** Counts by the kind of an index, whose name is before the bracket: there may be many indexes. */
    void excluded(String index, long files)
    {
        int bracket = index.indexOf('(');
        String kind = bracket < 0 ? index : index.substring(0, bracket);
        if (filesExcluded.size() < MOST_KINDS || filesExcluded.containsKey(kind)) {
            filesExcluded.computeIfAbsent(kind, k -> new LongAdder()).add(files);
        }
    }

    @Override
    public long getCalls()
    {
        return calls.sum();
    }

    @Override
    public long getCachedAnswers()
    {
        return cachedAnswers.sum();
    }

    @Override
    public long getFailures()
    {
        return failures.sum();
    }

    @Override
    public long getCallsSpared()
    {
        return callsSpared.sum();
    }

    @Override
    public long getFilesListed()
    {
        return filesListed.sum();
    }

    @Override
    public long getFilesSkipped()
    {
        return filesSkipped.sum();
    }

    @Override
    public Map<String, Long> getFilesExcluded()
    {
        Map<String, Long> found = new TreeMap<>();
        filesExcluded.forEach((kind, count) -> found.put(kind, count.sum()));
        return found;
    }

    @Override
    public long getFilesUnnamed()
    {
        return filesUnnamed.sum();
    }

    @Override
    public long getPlansChanged()
    {
        return plansChanged.sum();
    }
}
