package io.skipbridge.trino;

import io.trino.spi.TrinoException;
import io.trino.spi.connector.SchemaTableName;
import org.junit.jupiter.api.Test;

import java.util.Map;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

final class TestChosenSegments
{
    private static final SchemaTableName CALLS = new SchemaTableName("demo", "calls");

    @Test
    void segmentsAreThoseOfTheirTable()
    {
        assertEquals(Map.of(CALLS, "3,5", new SchemaTableName("demo", "u"), "0.1"), ChosenSegments.parse("Demo.Calls: 3, 5 ;demo.u:0.1"));
        assertEquals(Optional.of("3"), ChosenSegments.of("demo.calls:3", CALLS));
        assertEquals(Optional.empty(), ChosenSegments.of("demo.others:3", CALLS));
        assertEquals(Map.of(), ChosenSegments.parse(" "));
    }

    @Test
    void otherTextsAreRefused()
    {
        for (String text : new String[] {"calls:3", "demo.calls", "demo.calls:", "demo.calls:a", "demo.calls:3;", "demo.calls:3;read_optimized", "demo.calls:1;DEMO.calls:2"}) {
            assertThrows(TrinoException.class, () -> ChosenSegments.parse(text), text);
        }
    }
}
