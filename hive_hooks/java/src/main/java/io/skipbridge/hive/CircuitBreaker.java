package io.skipbridge.hive;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

/** Remembers failures. For some time after a failure no call is made. */
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

    /** @return whether this is the first failure since the breaker was closed, which is the one to report */
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
