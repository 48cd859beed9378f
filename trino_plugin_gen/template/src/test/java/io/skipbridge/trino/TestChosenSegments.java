package io.skipbridge.trino;

import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

final class TestChosenSegments
{
    @Test
    void segmentsAreThoseOfTheirTable()
    {
        assertEquals(Map.of("demo.calls", "3,5", "demo.u", "0.1"), BridgeSession.chosenSegments("Demo.Calls: 3, 5 ;demo.u:0.1"));
        assertEquals(Map.of(), BridgeSession.chosenSegments(" "));
    }

    @Test
    void otherTextsAreRefused()
    {
        for (String text : new String[] {"calls:3", "demo.calls", "demo.calls:", "demo.calls:a", "demo.calls:3;", "demo.calls:3;read_optimized", "demo.calls:1;DEMO.calls:2"}) {
            assertThrows(TrinoException.class, () -> BridgeSession.chosenSegments(text), text);
        }
    }
}
