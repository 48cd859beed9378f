package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.util.List;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

class TestFileVersions
{
    @Test
    void aChangeIsToldWithTimesThatPeopleRead()
    {
        assertEquals(
                "file:///f changed since it was planned: 940 bytes of 2023-11-14T22:13:20Z were planned, 300 bytes of 2023-11-14T22:13:21Z were found. "
                        + "Run the query again; for a table of segments run skipbridge segment refresh first",
                changed(1_700_000_000_000L));
    }

    @Test
    void aFileThatACommitNamesIsPerhapsDamaged()
    {
        assertEquals(
                "file:///f changed since it was planned: 940 bytes were planned, 300 bytes of 2023-11-14T22:13:21Z were found. "
                        + "Run the query again; if it fails again, the table's commits name a file that was damaged or deleted: restore it",
                changed(-1));
    }

    private static String changed(long modifiedMillis)
    {
        PlannedFile planned = new PlannedFile("file:///f", 0, 940, 940, modifiedMillis, PartitionEntry.NONE, ReaderSpec.PARQUET, List.of());
        return assertThrows(TrinoException.class, () -> FileVersions.check(planned, false, 300, 1_700_000_001_000L, 1)).getMessage();
    }
}
