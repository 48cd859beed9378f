package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.predicate.TupleDomain;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestSplitQueue
{
    @Test
    void givesEverySplitOnceThroughAFullQueue()
            throws Exception
    {
        SplitQueue queue = new SplitQueue(3, SplitPlacement.ANYWHERE);
        Thread loader = Thread.ofVirtual().start(() -> {
            try {
                for (int i = 0; i < 100 && queue.awaitRoom(); i++) {
                    queue.add(batch(2 * i), false);
                }
            }
            catch (InterruptedException e) {
                queue.fail(e);
            }
            queue.end();
        });
        List<String> paths = new ArrayList<>();
        boolean last = false;
        while (!last) {
            SplitQueue.Drained drained = queue.drain(3, each -> each).get();
            drained.splits().forEach(split -> paths.add(((BridgeSplit) split).files().getFirst().path()));
            last = drained.last();
        }
        loader.join();
        assertEquals(200, paths.size());
        assertEquals(200, new HashSet<>(paths).size());
        assertTrue(queue.finished());
    }

    @Test
    void isNeverFinishedWithAFailure()
    {
        SplitQueue queue = new SplitQueue(10, SplitPlacement.ANYWHERE);
        CompletableFuture<SplitQueue.Drained> waiting = queue.drain(10, drained -> drained);
        queue.add(batch(0), false);
        queue.fail(new IllegalStateException("broken"));
        queue.end();
        assertFalse(queue.finished());
        assertTrue(waiting.isDone());
        ExecutionException failure = assertThrows(ExecutionException.class, () -> queue.drain(10, drained -> drained).get());
        assertEquals("broken", failure.getCause().getMessage());
    }

    @Test
    void closeWakesBothSides()
            throws Exception
    {
        SplitQueue full = new SplitQueue(1, SplitPlacement.ANYWHERE);
        full.add(batch(0), false);
        Thread loader = Thread.ofVirtual().start(() -> {
            try {
                assertFalse(full.awaitRoom());
            }
            catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        SplitQueue empty = new SplitQueue(1, SplitPlacement.ANYWHERE);
        CompletableFuture<SplitQueue.Drained> waiting = empty.drain(1, drained -> drained);
        assertTrue(full.close());
        assertTrue(empty.close());
        loader.join();
        assertTrue(waiting.get().last());
        assertTrue(full.finished());
    }

    @Test
    void announcesTheEndWithTheLastSplits()
            throws Exception
    {
        SplitQueue queue = new SplitQueue(10, SplitPlacement.ANYWHERE);
        CompletableFuture<SplitQueue.Drained> waiting = queue.drain(10, drained -> drained);
        queue.add(batch(0), true);
        assertEquals(2, waiting.get().splits().size());
        assertTrue(waiting.get().last());
        assertTrue(queue.finished());
        assertFalse(queue.close());
    }

    private static SplitColumns batch(int first)
    {
        return new SplitColumns(new BatchBuilder().split(file(first)).split(file(first + 1)).build(), TupleDomain.all());
    }

    private static PlannedFile file(int number)
    {
        return new PlannedFile("file:///" + number, 0, 1, 1, -1, PartitionEntry.NONE, ReaderSpec.PARQUET, List.of());
    }
}
