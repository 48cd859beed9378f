package io.skipbridge.trino.split;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.wire.Plan;
import io.trino.spi.connector.DynamicFilter;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/** Waits for dynamic filters as long as it pays, and gives what the engine has collected of them so far. */
final class DynamicFilterTracker
{
    private final DynamicFilter filter;
    private final OptionalLong waitMillis;
    private final CountDownLatch asked = new CountDownLatch(1);

    /** @param waitMillis how long the session lets a scan wait for all filters; empty leaves it to the plan */
    DynamicFilterTracker(DynamicFilter filter, OptionalLong waitMillis)
    {
        this.filter = filter;
        this.waitMillis = waitMillis;
    }

    /** The engine asks for splits. It may do so long after it has planned, when the side of the join that it reads first is read. */
    void asked()
    {
        asked.countDown();
    }

    /** Waits for all filters if the session says how long, else for those that the plan names, or all if it names none, as long as it advises; from when splits are asked for. */
    void await(Plan plan)
            throws InterruptedException
    {
        long millis = waitMillis.orElse(plan.dynamicFilterWaitMillis());
        if (millis <= 0 || !filter.isAwaitable()) {
            return;
        }
        asked.await();
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        while (filter.isAwaitable() && (waitMillis.isPresent() || !collected(plan.dynamicFilterColumns()))) {
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

    private boolean collected(List<String> columns)
    {
        TupleDomain<BridgeColumnHandle> current = current();
        return current.isNone() || !columns.isEmpty() && current.getDomains().orElseThrow().keySet().stream()
                .map(BridgeColumnHandle::name)
                .collect(Collectors.toSet())
                .containsAll(columns);
    }

    TupleDomain<BridgeColumnHandle> current()
    {
        return filter.getCurrentPredicate().transformKeys(BridgeColumnHandle.class::cast);
    }
}
