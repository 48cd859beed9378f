package io.skipbridge.hive;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

/** Remembers what failed: for a while after a failure nothing is asked of it. */
final class CircuitBreaker
{
    private static final int MAX_ENTRIES = 10_000;

    private final long pauseNanos;
    private final LongSupplier clock;
    private final Map<String, Long> failed = new ConcurrentHashMap<>();

    CircuitBreaker(long pauseNanos, LongSupplier clock)
    {
        this.pauseNanos = pauseNanos;
        this.clock = clock;
    }

    boolean open(String what)
    {
        Long at = failed.get(what);
        return at != null && clock.getAsLong() - at < pauseNanos;
    }

    /** @return whether this is the first failure since it was closed: the one to tell of */
    boolean failed(String what)
    {
        if (failed.size() > MAX_ENTRIES) {
            failed.clear();
        }
        long now = clock.getAsLong();
        Long before = failed.put(what, now);
        return before == null || now - before >= pauseNanos;
    }

    void succeeded(String what)
    {
        failed.remove(what);
    }
}
