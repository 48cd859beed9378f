package io.skipbridge.trino.read.storage;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestAheadRead
{
    private static final int LENGTH = 1_000;

    /** A read, and whether it may have been interrupted. */
    private record Started(AheadRead read, AtomicBoolean stopped) {}

    @Test
    void everyReadEndsAndGivesBackWhatItTook()
            throws Exception
    {
        for (boolean keepThreads : new boolean[] {false, true}) {
            try (ReadBudget budget = new ReadBudget(keepThreads)) {
                AtomicInteger interrupted = new AtomicInteger();
                List<Started> all = new ArrayList<>();
                List<Started> open = new ArrayList<>();
                Random random = new Random(5);
                for (int i = 0; i < 4_000; i++) {
                    AtomicBoolean stopped = new AtomicBoolean();
                    AheadRead.start(budget, LENGTH, body(random.nextInt(6), stopped, interrupted)).ifPresent(read -> open.add(new Started(read, stopped)));
                    while (open.size() > 20 || (random.nextBoolean() && !open.isEmpty())) {
                        Started one = open.remove(random.nextInt(open.size()));
                        all.add(one);
                        end(one, random);
                    }
                }
                for (Started one : open) {
                    end(one, random);
                }
                all.addAll(open);
                for (Started one : all) {
                    one.read().done().get(10, SECONDS);
                    assertTrue(one.read().isDone());
                }
                assertEquals(0, interrupted.get(), "reads that began under another read's interrupt");
                assertUnused(budget);
            }
        }
    }

    @Test
    void aReadThatGetsNoThreadKeepsNothing()
    {
        for (boolean keepThreads : new boolean[] {false, true}) {
            ReadBudget budget = new ReadBudget(keepThreads);
            budget.close();
            assertEquals(Optional.empty(), AheadRead.start(budget, LENGTH, () -> new byte[LENGTH]));
            assertUnused(budget);
        }
    }

    @Test
    void readsInFlightEndWithTheirThreads()
            throws Exception
    {
        for (boolean keepThreads : new boolean[] {false, true}) {
            ReadBudget budget = new ReadBudget(keepThreads);
            List<AheadRead> reads = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                reads.add(AheadRead.start(budget, LENGTH, () -> paused(60_000)).orElseThrow());
            }
            budget.close();
            for (AheadRead read : reads) {
                read.done().get(10, SECONDS);
                assertThrows(IOException.class, read::take);
            }
            assertUnused(budget);
        }
    }

    private static void end(Started one, Random random)
    {
        if (random.nextBoolean()) {
            one.stopped().set(true);
            one.read().close();
            one.read().close();
            return;
        }
        if (random.nextInt(10) == 0) {
            one.stopped().set(true);
            Thread.currentThread().interrupt();
        }
        try {
            assertEquals(LENGTH, one.read().take().length);
        }
        catch (IOException | IllegalStateException | StackOverflowError e) {
            // as the body fails, or as this thread was interrupted
        }
        Thread.interrupted();
        one.read().close();
    }

    private static AheadRead.Body body(int kind, AtomicBoolean stopped, AtomicInteger interrupted)
    {
        return () -> {
            if (Thread.currentThread().isInterrupted() && !stopped.get()) {
                interrupted.incrementAndGet();
            }
            return switch (kind) {
                case 0 -> new byte[LENGTH];
                case 1 -> paused(1);
                case 2 -> throw new IOException("no");
                case 3 -> throw new IllegalStateException("no");
                case 4 -> throw new StackOverflowError();
                default -> paused(10);
            };
        };
    }

    private static byte[] paused(int millis)
            throws IOException
    {
        try {
            MILLISECONDS.sleep(millis);
        }
        catch (InterruptedException e) {
            // as Hadoop's client does
            Thread.currentThread().interrupt();
            throw new IOException(e);
        }
        return new byte[LENGTH];
    }

    /** No request is in flight, and a read of all bytes that there are may begin. */
    private static void assertUnused(ReadBudget budget)
    {
        assertEquals(0, budget.requestsInFlight());
        long all = Runtime.getRuntime().maxMemory() / 16;
        assertTrue(budget.tryAcquire(all), "bytes are kept");
        budget.requestEnded();
        budget.bytesTaken(all);
    }
}
