package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

class TestLocalFile
{
    private static final long TIME = 1_700_000_000_000L;
    private static final int VERSIONS = 5_000;

    @TempDir
    private Path directory;

    /** Each version has its number as content and as time, all have one size. */
    @Test
    void neverTakesALaterVersionForThePlannedOne()
            throws Exception
    {
        Path name = directory.resolve("f");
        AtomicInteger current = new AtomicInteger();
        AtomicBoolean ended = new AtomicBoolean();
        put(name, 0);
        Thread writer = new Thread(() -> {
            try {
                for (int version = 1; version < VERSIONS && !ended.get(); version++) {
                    put(name, version);
                    current.set(version);
                }
            }
            catch (IOException e) {
                throw new IllegalStateException(e);
            }
        });
        writer.start();
        try {
            while (current.get() < VERSIONS - 1 && writer.isAlive()) {
                int version = current.get();
                byte[] bytes = new byte[4];
                try (ReadableFile file = open(planned(name, TIME + version))) {
                    file.readFully(0, bytes, 0, 4);
                }
                catch (TrinoException e) {
                    assertEquals(BridgeErrorCode.FILE_CHANGED.toErrorCode(), e.getErrorCode());
                    continue;
                }
                assertEquals("%04d".formatted(version), new String(bytes));
            }
        }
        finally {
            ended.set(true);
            writer.join();
        }
    }

    @Test
    void tellsAFileThatIsGoneFromOneThatCannotBeOpened()
            throws IOException
    {
        TrinoException gone = assertThrows(TrinoException.class, () -> open(planned(directory.resolve("gone"), TIME)));
        assertEquals(BridgeErrorCode.FILE_CHANGED.toErrorCode(), gone.getErrorCode());
        Path other = Files.createDirectory(directory.resolve("directory"));
        assertThrows(FileNotFoundException.class, () -> open(planned(other, TIME)));
    }

    private static void put(Path name, int version)
            throws IOException
    {
        Path written = name.resolveSibling("written");
        Files.writeString(written, "%04d".formatted(version));
        Files.setLastModifiedTime(written, FileTime.fromMillis(TIME + version));
        Files.move(written, name, ATOMIC_MOVE);
    }

    private static PlannedFile planned(Path name, long modifiedMillis)
    {
        return new PlannedFile("file://" + name, 0, 4, 4, modifiedMillis, null, null, List.of());
    }

    private static ReadableFile open(PlannedFile planned)
            throws IOException
    {
        return FileOpener.create(Set.of(), Map.of(), Optional.empty(), "lake", null).open(null, planned);
    }
}
