package io.skipbridge.hive;

import org.junit.jupiter.api.Test;

import java.util.concurrent.atomic.AtomicLong;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestCircuitBreaker
{
    private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 10);
    private final CircuitBreaker breaker = new CircuitBreaker(30, now::get);

    @Test
    void opensForAWhile()
    {
        assertFalse(breaker.open("a"));
        assertTrue(breaker.failed("a"));
        assertTrue(breaker.open("a"));
        assertFalse(breaker.open("b"));
        now.addAndGet(29);
        assertTrue(breaker.open("a"));
        now.addAndGet(1);
        assertFalse(breaker.open("a"));
        assertTrue(breaker.failed("a"));
    }

    @Test
    void isToldOfOnce()
    {
        assertTrue(breaker.failed("a"));
        assertFalse(breaker.failed("a"));
        breaker.succeeded("a");
        assertFalse(breaker.open("a"));
        assertTrue(breaker.failed("a"));
    }
}
