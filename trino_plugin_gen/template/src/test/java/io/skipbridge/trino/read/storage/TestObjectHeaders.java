package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.read.storage.ObjectHeaders.Version;
import org.junit.jupiter.api.Test;

import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestObjectHeaders
{
    private static final Optional<String> TIME = Optional.of("Sun, 06 Nov 1994 08:49:37 GMT");
    private static final long MILLIS = 784_111_777_000L;
    private static final Optional<String> TAG = Optional.of("\"1\"");

    @Test
    void readsPartialAndWholeAnswers()
    {
        assertEquals(Optional.of(new Version(1_000, MILLIS, TAG)), ObjectHeaders.parse(206, Optional.of("bytes 0-9/1000"), Optional.of("10"), TIME, TAG));
        assertEquals(Optional.of(new Version(10, MILLIS, Optional.empty())), ObjectHeaders.parse(200, Optional.empty(), Optional.of("10"), TIME, Optional.empty()));
    }

    @Test
    void tellsNothingOfWhatItCannotRead()
    {
        assertEquals(Optional.empty(), ObjectHeaders.parse(206, Optional.of("bytes 0-9/*"), Optional.of("10"), TIME, Optional.empty()));
        assertEquals(Optional.empty(), ObjectHeaders.parse(206, Optional.empty(), Optional.of("10"), TIME, Optional.empty()));
        assertEquals(Optional.empty(), ObjectHeaders.parse(200, Optional.empty(), Optional.of("10"), Optional.empty(), TAG));
        assertEquals(Optional.empty(), ObjectHeaders.parse(200, Optional.empty(), Optional.of("10"), Optional.of("yesterday"), TAG));
    }

    @Test
    void knowsTheWholeFileInPlaceOfARange()
    {
        Optional<String> later = Optional.of("bytes=5-9");
        assertTrue(ObjectHeaders.ignoresRange(200, later, Optional.empty()));
        assertTrue(ObjectHeaders.ignoresRange(200, Optional.of("bytes=-5"), Optional.empty()));
        assertFalse(ObjectHeaders.ignoresRange(206, later, Optional.of("bytes 5-9/10")));
        assertFalse(ObjectHeaders.ignoresRange(200, later, Optional.of("bytes 5-9/10")));
        assertFalse(ObjectHeaders.ignoresRange(200, Optional.of("bytes=0-4"), Optional.empty()));
        assertFalse(ObjectHeaders.ignoresRange(200, Optional.empty(), Optional.empty()));
    }

    /** The same values as in tests/unit/splits/test_etags.py. */
    @Test
    void hashesEtagsAsThePlannerDoes()
    {
        assertEquals(96354, ObjectHeaders.hash("abc"));
        assertEquals(96354, ObjectHeaders.hash("\"abc\""));
        assertEquals(96354, ObjectHeaders.hash("W/\"abc\""));
        assertEquals(-2113250021, ObjectHeaders.hash("\"d41d8cd98f00b204e9800998ecf8427e-3\""));
        assertEquals(0, ObjectHeaders.hash("\"\""));
        assertEquals(0, ObjectHeaders.hash("é"));
    }
}
