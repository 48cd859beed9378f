package io.skipbridge.trino.read.hudi;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.read.merge.LogColumns;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.util.Map;
import java.util.Optional;
import java.util.Set;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestLogVersions
{
    private static LogVersions told(String json)
    {
        return LogVersions.of(new ReaderSpec("hudi_by_id", Map.of("skipbridge.hudi.older-logs", json), Optional.empty())).orElseThrow();
    }

    @Test
    void eachVersionDiffersFromTheOneBefore()
    {
        // k, a and b; then b is called c; then a is dropped, and added again as another column
        LogVersions versions = told("""
                {"exceptions": {"35": 1, "36": -1}, "changes": [
                  {"since": 10, "columns": {"a": null, "c": {"name": "b"}}, "names": ["a", "b", "k"]},
                  {"since": 20, "same": ["c"], "names": ["b", "c"]},
                  {"since": 30, "same": ["a"]}]}""");
        LogColumns first = versions.at("15");
        assertEquals(Set.of("k", "a", "b"), first.names());
        assertFalse(first.isSame("c") || first.isSame("A"));
        LogColumns second = versions.at("20");
        assertEquals(Set.of("k", "a", "c"), second.names());
        assertTrue(second.isSame("c") && !second.isSame("a"));
        LogColumns third = versions.at("31");
        assertEquals(Set.of("k", "a", "c"), third.names());
        assertTrue(third.isSame("a") && third.isSame("c"));
        assertEquals(second, versions.at("35"), "it wrote by an older version");
        for (String unknown : new String[] {"9", "", "1x", "36"}) {
            assertThrows(UnsupportedSlice.class, () -> versions.at(unknown));
        }
    }

    @Test
    void versionsOfAnotherPlannerAreNotGuessed()
    {
        TrinoException failure = assertThrows(TrinoException.class, () -> told("{\"exceptions\": {}, \"versions\": []}"));
        assertEquals(BridgeErrorCode.PLANNER_PROTOCOL.toErrorCode(), failure.getErrorCode());
    }

    @Test
    void logsHaveTheTablesColumnsWhereNothingIsTold()
    {
        assertTrue(LogVersions.of(ReaderSpec.PARQUET).isEmpty());
    }
}
