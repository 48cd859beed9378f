package io.skipbridge.hive;

import org.slf4j.LoggerFactory;

import javax.management.JMException;
import javax.management.ObjectName;

import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.LongAdder;

/** Counters of this JVM. */
final class Hooks
        implements HooksMXBean
{
    static final Hooks COUNTERS = register(new Hooks());

    final LongAdder calls = new LongAdder();
    final LongAdder cachedAnswers = new LongAdder();
    final LongAdder failures = new LongAdder();
    final LongAdder callsSpared = new LongAdder();
    final LongAdder filesListed = new LongAdder();
    final LongAdder filesSkipped = new LongAdder();
    final LongAdder plansChanged = new LongAdder();

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
    public long getPlansChanged()
    {
        return plansChanged.sum();
    }
}
