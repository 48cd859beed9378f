package io.skipbridge.trino.split;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.wire.Plan;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.predicate.TupleDomain;

import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Keeps the dynamic filter that the engine hands over with each request for splits. The engine itself waits before the first one. */
final class DynamicFilterTracker
{
    private static final long ADVICE_MILLIS = 100;
    private static final long UNADVISED_MILLIS = 1_000;

    private final OptionalLong waitMillis;
    private final CompletableFuture<Plan> plan = new CompletableFuture<>();
    private final CountDownLatch asked = new CountDownLatch(1);
    private volatile TupleDomain<ColumnHandle> offered = TupleDomain.all();

    /** @param waitMillis how long the session lets a scan wait; empty leaves it to the plan */
    DynamicFilterTracker(OptionalLong waitMillis)
    {
        this.waitMillis = waitMillis;
    }

    /** How long the engine is to wait. A plan that is not open soon enough gives no advice. */
    long waitMillis()
    {
        if (waitMillis.isPresent()) {
            return waitMillis.getAsLong();
        }
        try {
            return plan.get(ADVICE_MILLIS, TimeUnit.MILLISECONDS).dynamicFilterWaitMillis();
        }
        catch (TimeoutException | ExecutionException e) {
            return UNADVISED_MILLIS;
        }
        catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return 0;
        }
    }

    void offer(TupleDomain<ColumnHandle> predicate)
    {
        offered = predicate;
        asked.countDown();
    }

    void await(Plan opened)
            throws InterruptedException
    {
        plan.complete(opened);
        asked.await();
    }

    TupleDomain<BridgeColumnHandle> current()
    {
        return offered.transformKeys(BridgeColumnHandle.class::cast);
    }
}
