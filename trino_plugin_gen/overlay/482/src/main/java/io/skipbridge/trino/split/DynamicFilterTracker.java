package io.skipbridge.trino.split;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.predicate.TupleDomain;

import java.util.concurrent.CountDownLatch;

/** Keeps the dynamic filter that the engine hands over with each request for splits. The engine itself waits before the first one. */
final class DynamicFilterTracker
{
    private final CountDownLatch asked = new CountDownLatch(1);
    private volatile TupleDomain<ColumnHandle> offered = TupleDomain.all();

    void offer(TupleDomain<ColumnHandle> predicate)
    {
        offered = predicate;
        asked.countDown();
    }

    void await()
            throws InterruptedException
    {
        asked.await();
    }

    TupleDomain<BridgeColumnHandle> current()
    {
        return offered.transformKeys(BridgeColumnHandle.class::cast);
    }
}
