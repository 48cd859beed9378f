package io.skipbridge.trino.read.file;

import org.junit.jupiter.api.Test;

import java.util.concurrent.atomic.AtomicInteger;

import static org.junit.jupiter.api.Assertions.assertEquals;

class TestAheadWindow
{
    private final AtomicInteger reached = new AtomicInteger();

    @Test
    void aScanThatEndsEarlyHasReadLittleInVain()
    {
        AheadWindow window = new AheadWindow(reached, 1);
        int taken = 0;
        while (taken < 10) {
            window.took(true);
            taken++;
        }
        // what is ahead is at most as much as was taken
        assertEquals(8, window.size());
    }

    @Test
    void doublesOnlyWhileThePageSourceWaits()
    {
        AheadWindow window = new AheadWindow(reached, 1);
        for (int i = 0; i < 100; i++) {
            window.took(false);
        }
        assertEquals(1, window.size());
        for (int i = 0; i < 1_000; i++) {
            window.took(true);
        }
        assertEquals(64, window.size());
    }

    @Test
    void laterPageSourcesStartWithHalfOfWhatWasReached()
    {
        AheadWindow first = new AheadWindow(reached, 1);
        for (int i = 0; i < 10; i++) {
            first.took(true);
        }
        assertEquals(4, new AheadWindow(reached, 1).size());
    }

    @Test
    void aFirstWindowOfSmallFilesDoublesAfterItsFirstWait()
    {
        AheadWindow window = new AheadWindow(reached, 8);
        for (int i = 0; i < 8; i++) {
            window.took(i == 0);
        }
        assertEquals(8, window.size());
        window.took(true);
        assertEquals(16, window.size());
        assertEquals(8, new AheadWindow(reached, 1).size());
    }
}
