package io.skipbridge.trino.read.storage;

import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;

/** A read on a thread of its own, before its bytes are needed. Only one thread may take or close it. */
public final class AheadRead
        implements Closeable
{
    /** Reads all bytes. Closes what it opens. */
    @FunctionalInterface
    public interface Body
    {
        byte[] read()
                throws IOException;
    }

    private final ReadBudget budget;
    private final int length;
    private final FutureTask<byte[]> task;
    private final CompletableFuture<Void> done = new CompletableFuture<>();
    private boolean ended;

    private AheadRead(ReadBudget budget, int length, Body body)
    {
        this.budget = budget;
        this.length = length;
        this.task = new FutureTask<>(body::read);
    }

    private void run()
    {
        try {
            task.run();
        }
        finally {
            // also if it was stopped before it began
            budget.requestEnded();
            done.complete(null);
        }
    }

    /** Starts a read, or returns nothing if the budget is used up or no thread is to be had. */
    public static Optional<AheadRead> start(ReadBudget budget, int length, Body body)
    {
        if (!budget.tryAcquire(length)) {
            return Optional.empty();
        }
        boolean started = false;
        try {
            AheadRead read = new AheadRead(budget, length, body);
            budget.run(read::run);
            started = true;
            return Optional.of(read);
        }
        catch (RejectedExecutionException | OutOfMemoryError e) {
            // the catalog was dropped, or the system gives no more threads
            return Optional.empty();
        }
        finally {
            if (!started) {
                budget.requestEnded();
                budget.bytesTaken(length);
            }
        }
    }

    public int length()
    {
        return length;
    }

    /** Whether {@link #take} returns or fails without a wait. */
    public boolean isDone()
    {
        return task.isDone();
    }

    /** Completes when {@link #take} no longer waits, also if the read failed. */
    public CompletableFuture<?> done()
    {
        return done;
    }

    /** Waits for the bytes. Fails as the read failed. */
    public byte[] take()
            throws IOException
    {
        try {
            return task.get();
        }
        catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted while reading");
        }
        catch (CancellationException e) {
            throw new InterruptedIOException("stopped while reading");
        }
        catch (ExecutionException e) {
            switch (e.getCause()) {
                case IOException problem -> throw problem;
                case RuntimeException problem -> throw problem;
                case Error problem -> throw problem;
                default -> throw new IOException(e.getCause());
            }
        }
        finally {
            close();
        }
    }

    /** Stops the read if it is in flight. Returns its bytes to the budget. */
    @Override
    public void close()
    {
        if (!ended) {
            ended = true;
            task.cancel(true);
            budget.bytesTaken(length);
        }
    }
}
