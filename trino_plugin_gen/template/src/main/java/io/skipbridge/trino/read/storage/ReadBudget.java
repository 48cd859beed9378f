package io.skipbridge.trino.read.storage;

import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/** Bounds what all scans of a catalog on this node read ahead, in requests in flight and in bytes. */
public final class ReadBudget
{
    private static final int REQUESTS = Math.clamp(64L * Runtime.getRuntime().availableProcessors(), 128, 400);
    private static final int HEAP_SHARE = 16;

    private final Semaphore requests = new Semaphore(REQUESTS);
    private final AtomicLong bytes = new AtomicLong();
    private final long maxBytes = Runtime.getRuntime().maxMemory() / HEAP_SHARE;

    /** Takes a request and its bytes, or nothing if either would exceed the bound. */
    boolean tryAcquire(long length)
    {
        if (!requests.tryAcquire()) {
            return false;
        }
        if (bytes.addAndGet(length) > maxBytes) {
            bytes.addAndGet(-length);
            requests.release();
            return false;
        }
        return true;
    }

    void requestEnded()
    {
        requests.release();
    }

    void bytesTaken(long length)
    {
        bytes.addAndGet(-length);
    }

    /** The requests in flight. */
    public int requestsInFlight()
    {
        return REQUESTS - requests.availablePermits();
    }
}
