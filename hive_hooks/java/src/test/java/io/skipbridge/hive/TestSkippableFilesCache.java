package io.skipbridge.hive;

import io.skipbridge.hive.wire.FileAnswers;
import io.skipbridge.hive.wire.SkippableFiles;
import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.Collections;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** The law: a question is asked once, and no answer outlives its use or its bound. */
class TestSkippableFilesCache
{
    private final SkippableFilesCache cache = new SkippableFilesCache(new CircuitBreaker(1, System::nanoTime));
    private final AtomicInteger asked = new AtomicInteger();

    private void ask(String... question)
            throws Exception
    {
        cache.answer(Arrays.asList(question), () -> {
            asked.incrementAndGet();
            return SkippableFiles.nothing();
        });
    }

    @Test
    void equalQuestionsAreAskedOnce()
            throws Exception
    {
        for (int i = 0; i < 3; i++) {
            ask("a", "bc");
            ask("ab", "c");
        }
        assertEquals(2, asked.get());
    }

    @Test
    void answersAreForgotten()
            throws Exception
    {
        for (int i = 0; i < 1000; i++) {
            ask("q" + i);
        }
        long now = System.nanoTime();
        assertEquals(256, cache.trim(now));
        assertEquals(0, cache.trim(now + TimeUnit.MINUTES.toNanos(11)));
    }

    @Test
    void answersTakeNoMoreThanTheirBytes()
            throws Exception
    {
        char[] path = new char[10 << 20];
        Arrays.fill(path, 'x');
        SkippableFiles large = FileAnswers.naming(new String(path));
        for (int i = 0; i < 20; i++) {
            cache.answer(Collections.singletonList("q" + i), () -> large);
        }
        long now = System.nanoTime();
        assertEquals((64L << 20) / large.bytes(), cache.trim(now));
        ask("q19");
        assertEquals(0, asked.get());
        ask("q0");
        assertEquals(1, asked.get());
    }

    @Test
    void anAnswerThatIsTooMuchByItselfIsNotKept()
            throws Exception
    {
        char[] path = new char[65 << 20];
        SkippableFiles huge = FileAnswers.naming(new String(path));
        assertEquals(huge, cache.answer(Collections.singletonList("q"), () -> huge));
        assertEquals(0, cache.trim(System.nanoTime()));
    }

    @Test
    void aFailureIsEachQuestionsOwn()
    {
        assertThrows(IllegalStateException.class, () -> cache.answer(Arrays.asList("q"), () -> {
            throw new IllegalStateException("no");
        }));
        assertTrue(cache.trim(System.nanoTime() + TimeUnit.MINUTES.toNanos(11)) == 0);
    }
}
