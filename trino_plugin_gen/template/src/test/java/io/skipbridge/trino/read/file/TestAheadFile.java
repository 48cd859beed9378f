package io.skipbridge.trino.read.file;

import io.skipbridge.trino.read.storage.ReadBudget;
import io.skipbridge.trino.read.storage.ReadableFile;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestAheadFile
{
    private static final int SIZE = 1_000;

    private final byte[] content = new byte[SIZE];
    private final List<String> requests = new CopyOnWriteArrayList<>();
    private ReadBudget budget = new ReadBudget(false);
    private boolean closed;

    TestAheadFile()
    {
        new Random(3).nextBytes(content);
    }

    @Test
    void bytesAreThoseOfTheFileWithThreadsThatAreKept()
            throws IOException
    {
        try (ReadBudget kept = new ReadBudget(true)) {
            budget = kept;
            bytesAreThoseOfTheFile();
        }
    }

    /** The law: whatever is expected, forgotten and asked for, the bytes are those of the file, and nothing is kept. */
    @Test
    void bytesAreThoseOfTheFile()
            throws IOException
    {
        Random random = new Random(11);
        for (int round = 0; round < 400; round++) {
            try (AheadFile file = file(1 + random.nextInt(8))) {
                for (int step = 0; step < 30; step++) {
                    int offset = random.nextInt(SIZE);
                    int length = random.nextInt(Math.min(SIZE - offset, 200) + 1);
                    switch (random.nextInt(4)) {
                        case 0 -> file.expect(offset, length);
                        case 1 -> file.forget(offset);
                        case 2 -> file.readOn();
                        default -> assertRead(file, offset, length);
                    }
                }
                file.forget(SIZE);
                assertEquals(0, file.bytes());
            }
            assertTrue(closed);
        }
    }

    @Test
    void piecesAreReadBeforeTheyAreAskedForAndOnce()
            throws IOException
    {
        try (AheadFile file = file(4)) {
            for (int offset = 0; offset < SIZE; offset += 100) {
                file.expect(offset, 100);
            }
            assertEquals(0, file.bytes());
            assertRead(file, 0, 10);
            // the piece in work, and the next four
            assertEquals(500, file.bytes());
            for (int offset = 10; offset < SIZE; offset += 10) {
                assertRead(file, offset, 10);
            }
            assertEquals(0, file.bytes());
        }
        assertEquals(10, requests.size());
    }

    @Test
    void whatTheReaderLeavesOutIsReadAheadOnlyOnce()
            throws IOException
    {
        try (AheadFile file = file(8)) {
            file.expect(0, 100);
            file.expect(100, 100);
            assertRead(file, 0, 100);
            file.expect(500, 100);
            file.expect(600, 100);
            file.forget(500);
            assertRead(file, 500, 100);
            assertEquals(0, file.bytes());
        }
    }

    @Test
    void aFailedReadFailsTheOneWhoAsks()
            throws IOException
    {
        try (AheadFile file = new AheadFile(new Whole(), (_, _) -> {
            throw new IOException("no");
        }, budget, new ReadCounters(), new AheadWindow(new AtomicInteger(8), 1))) {
            file.expect(0, 100);
            IOException e = assertThrows(IOException.class, () -> file.readFully(0, new byte[10], 0, 10));
            assertEquals("no", e.getMessage());
        }
    }

    private AheadFile file(int window)
    {
        closed = false;
        return new AheadFile(new Whole(), (offset, length) -> {
            requests.add(offset + "+" + length);
            return Arrays.copyOfRange(content, (int) offset, (int) offset + length);
        }, budget, new ReadCounters(), new AheadWindow(new AtomicInteger(2 * window), 1));
    }

    private void assertRead(AheadFile file, int offset, int length)
            throws IOException
    {
        byte[] found = new byte[length + 2];
        file.readFully(offset, found, 1, length);
        assertArrayEquals(Arrays.copyOfRange(content, offset, offset + length), Arrays.copyOfRange(found, 1, length + 1));
    }

    private final class Whole
            implements ReadableFile
    {
        @Override
        public long size()
        {
            return SIZE;
        }

        @Override
        public void readFully(long position, byte[] buffer, int offset, int length)
        {
            System.arraycopy(content, (int) position, buffer, offset, length);
        }

        @Override
        public void close()
        {
            closed = true;
        }
    }
}
