package io.skipbridge.hive.wire;

import io.skipbridge.client.ProtocolException;
import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.Random;

import static io.skipbridge.hive.wire.FileAnswers.answer;
import static io.skipbridge.hive.wire.FileAnswers.files;
import static io.skipbridge.hive.wire.FileAnswers.read;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestSkippableFiles
{
    @Test
    void aFileIsSkippedOnlyAsItWasKnown()
    {
        SkippableFiles found = read(answer(2, false, 2, "file:///t/", files("p=1/a", "p=1/é")));
        assertEquals(7, found.generation());
        assertEquals(2, found.size());
        assertTrue(found.skips("file:///t/p=1/é", 11, 101));
        assertFalse(found.skips("file:///t/p=1/é", 12, 101));
        assertFalse(found.skips("file:///t/p=1/é", 11, 102));
        assertFalse(found.skips("file:///t/p=1/b", 11, 101));
        assertTrue(found.names("file:///t/p=1/é"));
        assertFalse(found.names("file:///t/p=1/b"));
    }

    @Test
    void aFileOfNoTimeIsKnownByItsSizeAndNoOtherWay()
    {
        byte[] files = files("a", "b");
        for (int i = 16; i < 24; i++) {
            files[i] = (byte) 0xff;
        }
        SkippableFiles found = read(answer(2, false, 2, "file:///t/", files));
        assertTrue(found.skipsWritten("file:///t/a", 10));
        assertFalse(found.skipsWritten("file:///t/a", 11));
        assertFalse(found.skipsWritten("file:///t/b", 11));
        assertFalse(found.skipsWritten("file:///t/c", 10));
        assertFalse(found.skips("file:///t/a", 10, 100));
        assertTrue(found.skips("file:///t/b", 11, 101));
    }

    @Test
    void anOlderPlannerThatSaysAllAtOnceIsNotBelieved()
    {
        SkippableFiles found = read(answer(2, true, 0, "", new byte[0]));
        assertFalse(found.skipsAny() || found.skips("file:///new", 1, 1) || found.names("file:///new") || found.skipsWritten("file:///new", 1));
    }

    @Test
    void anotherProtocolIsRefused()
    {
        for (int other : new int[] {-1, 0, 1, 3}) {
            assertThrows(ProtocolException.class, () -> read(answer(other, true, 0, "", new byte[0])), "" + other);
        }
    }

    @Test
    void countsThatDoNotFitAreRefused()
    {
        byte[] files = files("a");
        for (long count : new long[] {-1, 2, Integer.MAX_VALUE, Long.MAX_VALUE}) {
            assertThrows(ProtocolException.class, () -> read(answer(2, false, count, "", files)), "" + count);
        }
        byte[] offsets = files.clone();
        offsets[16 + 4] = 99;
        assertThrows(ProtocolException.class, () -> read(answer(2, false, 1, "", offsets)));
    }

    @Test
    void anyBytesAtAllAreReadOrRefused()
    {
        Random random = new Random(5);
        byte[] sound = answer(2, false, 2, "file:///t/", files("a", "b"));
        for (int i = 0; i < 20_000; i++) {
            byte[] broken = Arrays.copyOf(sound, i % 3 == 0 ? random.nextInt(sound.length) : sound.length);
            for (int n = random.nextInt(3); n >= 0 && broken.length > 0; n--) {
                broken[random.nextInt(broken.length)] = (byte) random.nextInt();
            }
            try {
                read(broken);
            }
            catch (ProtocolException e) {
                // refused
            }
        }
    }
}
