package io.skipbridge.trino.split;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.connector.DynamicFilter;
import io.trino.spi.predicate.TupleDomain;

import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Waits for dynamic filters, at most a given time, and gives what the engine has collected of them so far. */
final class DynamicFilterTracker
{
    private final DynamicFilter filter;
    private final Duration wait;

    DynamicFilterTracker(DynamicFilter filter, Duration wait)
    {
        this.filter = filter;
        this.wait = wait;
    }

    void await()
            throws InterruptedException
    {
        long deadline = System.nanoTime() + wait.toNanos();
        while (filter.isAwaitable()) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return;
            }
            try {
                // the engine's future is shared: cancelling or completing it is not ours
                filter.isBlocked().get(left, TimeUnit.NANOSECONDS);
            }
            catch (TimeoutException | ExecutionException e) {
                return;
            }
        }
    }

    TupleDomain<BridgeColumnHandle> current()
    {
        return filter.getCurrentPredicate().transformKeys(BridgeColumnHandle.class::cast);
    }
}
