package io.skipbridge.trino.read.storage;

import java.io.Closeable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/** Bounds what all scans of a catalog on this node read ahead, in requests in flight and in bytes, and has the threads for it. */
public final class ReadBudget
        implements Closeable
{
    private static final String THREADS = "skipbridge-read-ahead";
    private static final int REQUESTS = Math.clamp(64L * Runtime.getRuntime().availableProcessors(), 128, 400);
    private static final int HEAP_SHARE = 16;

    private final Semaphore requests = new Semaphore(REQUESTS);
    private final AtomicLong bytes = new AtomicLong();
    private final long maxBytes = Runtime.getRuntime().maxMemory() / HEAP_SHARE;
    private final ExecutorService threads;

    /** @param keepThreads whether threads are used again: Hadoop's client copies its whole configuration for each new thread that opens a file */
    public ReadBudget(boolean keepThreads)
    {
        this.threads = keepThreads
                ? Executors.newCachedThreadPool(Thread.ofPlatform().daemon().name(THREADS + "-", 0).factory())
                : Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name(THREADS).factory());
    }

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

    /** Runs a read on another thread. */
    void run(Runnable read)
    {
        threads.execute(read);
    }

    /** Stops what is in flight. */
    @Override
    public void close()
    {
        threads.shutdownNow();
    }

    /** The requests in flight. */
    public int requestsInFlight()
    {
        return REQUESTS - requests.availablePermits();
    }
}
