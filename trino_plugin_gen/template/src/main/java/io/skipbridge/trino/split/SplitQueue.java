package io.skipbridge.trino.split;

import io.trino.spi.connector.ConnectorSplit;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * A bounded queue between the thread that loads batches and the engine that drains them.
 *
 * <p>It is open, then ended, failed or closed. {@link #finished} is never true after a failure: the engine would return a result with rows
 * missing.
 */
final class SplitQueue
{
    /** Splits taken from the queue; {@code last}: no splits follow. */
    record Drained(List<ConnectorSplit> splits, boolean last) {}

    private final int maxBufferedSplits;
    private final SplitPlacement placement;
    private final ArrayDeque<SplitColumns> batches = new ArrayDeque<>();
    private int nextInFirst;
    private int buffered;
    private boolean ended;
    private boolean closed;
    private Throwable failure;
    private CompletableFuture<Void> changed = new CompletableFuture<>();

    SplitQueue(int maxBufferedSplits, SplitPlacement placement)
    {
        this.maxBufferedSplits = maxBufferedSplits;
        this.placement = placement;
    }

    /** Waits while the queue is full. Returns false if the queue was closed. Only the loader calls it. */
    boolean awaitRoom()
            throws InterruptedException
    {
        synchronized (this) {
            while (buffered >= maxBufferedSplits && !closed) {
                wait();
            }
            return !closed;
        }
    }

    /** @param last whether no splits follow: the engine learns it together with these splits, not a call later */
    void add(SplitColumns columns, boolean last)
    {
        synchronized (this) {
            if (columns.splits() > 0 && !closed) {
                batches.add(columns);
                buffered += columns.splits();
            }
            ended |= last;
        }
        signal();
    }

    void end()
    {
        synchronized (this) {
            ended = true;
        }
        signal();
    }

    void fail(Throwable problem)
    {
        synchronized (this) {
            if (failure == null && !closed) {
                failure = problem;
            }
        }
        signal();
    }

    /** Returns whether the loader was still loading. */
    boolean close()
    {
        boolean loading;
        synchronized (this) {
            loading = !ended && failure == null;
            closed = true;
            batches.clear();
            buffered = 0;
        }
        signal();
        return loading;
    }

    /**
     * Completes when there are splits, or none will follow. Fails with the loader's failure, even if splits are still buffered.
     *
     * @param form converts the splits to what the engine expects
     */
    <T> CompletableFuture<T> drain(int max, Function<Drained, T> form)
    {
        CompletableFuture<T> result = new CompletableFuture<>();
        drain(max, form, result);
        return result;
    }

    private <T> void drain(int max, Function<Drained, T> form, CompletableFuture<T> result)
    {
        Drained drained = null;
        Throwable problem;
        CompletableFuture<Void> next;
        synchronized (this) {
            problem = failure;
            next = changed;
            if (problem == null && (buffered > 0 || ended || closed)) {
                List<ConnectorSplit> splits = take(max);
                notifyAll();
                drained = new Drained(splits, buffered == 0 && (ended || closed));
            }
        }
        if (problem != null) {
            result.completeExceptionally(problem);
        }
        else if (drained != null) {
            result.complete(form.apply(drained));
        }
        else {
            next.thenRun(() -> drain(max, form, result));
        }
    }

    synchronized boolean finished()
    {
        return failure == null && buffered == 0 && (ended || closed);
    }

    private List<ConnectorSplit> take(int max)
    {
        List<ConnectorSplit> splits = new ArrayList<>(Math.min(max, buffered));
        while (splits.size() < max && buffered > 0) {
            SplitColumns first = batches.peek();
            splits.add(new BridgeSplit(first, nextInFirst++, placement));
            buffered--;
            if (nextInFirst == first.splits()) {
                batches.remove();
                nextInFirst = 0;
            }
        }
        return splits;
    }

    private void signal()
    {
        CompletableFuture<Void> waiting;
        synchronized (this) {
            waiting = changed;
            changed = new CompletableFuture<>();
            notifyAll();
        }
        waiting.complete(null);
    }
}
