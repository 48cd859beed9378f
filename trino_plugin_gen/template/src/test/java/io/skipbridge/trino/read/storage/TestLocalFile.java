package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestLocalFile
{
    private static final long TIME = 1_700_000_000_000L;
    private static final int VERSIONS = 1_000;

    @TempDir
    private Path directory;

    /** In the locale C any name with a letter beyond ASCII is such a name. */
    @Test
    void saysThatJavaCannotWriteAName()
    {
        PlannedFile unwritable = new PlannedFile("file:///t/\0", 0, 4, 4, TIME, null, null, List.of());
        TrinoException problem = assertThrows(TrinoException.class, () -> open(unwritable));
        assertEquals(BridgeErrorCode.FILE_UNREADABLE.toErrorCode(), problem.getErrorCode());
        assertTrue(problem.getMessage().contains("LC_ALL=C.UTF-8"), problem.getMessage());
    }

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
                String found;
                try (ReadableFile file = open(planned(name, TIME + version))) {
                    found = read(file, 0, 4);
                }
                catch (TrinoException e) {
                    assertEquals(BridgeErrorCode.FILE_CHANGED.toErrorCode(), e.getErrorCode());
                    continue;
                }
                assertEquals("%04d".formatted(version), found);
            }
        }
        finally {
            ended.set(true);
            writer.join();
        }
    }

    @Test
    void refusesAFileThatIsWrittenWhileItIsOpen()
            throws IOException
    {
        Path name = directory.resolve("f");
        for (boolean readBefore : new boolean[] {false, true}) {
            for (String content : new String[] {"5678", "567", ""}) {
                put(name, 1234);
                try (ReadableFile file = open(planned(name, TIME + 1234))) {
                    if (readBefore) {
                        assertEquals("12", read(file, 0, 2));
                    }
                    Files.writeString(name, content);
                    TrinoException changed = assertThrows(TrinoException.class, () -> read(file, 2, 2));
                    assertEquals(BridgeErrorCode.FILE_CHANGED.toErrorCode(), changed.getErrorCode());
                }
            }
        }
    }

    @Test
    void readsOnInAFileWhoseNameIsGoneOrAnotherFiles()
            throws IOException
    {
        Path name = directory.resolve("f");
        put(name, 1234);
        try (ReadableFile file = open(planned(name, TIME + 1234))) {
            assertEquals("12", read(file, 0, 2));
            put(name, 5678);
            assertEquals("34", read(file, 2, 2));
            Files.delete(name);
            assertEquals("23", read(file, 1, 2));
        }
    }

    private static String read(ReadableFile file, long position, int length)
            throws IOException
    {
        byte[] bytes = new byte[length];
        file.readFully(position, bytes, 0, length);
        return new String(bytes);
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

    @Test
    void aSmallFileIsReadByAnyOfItsNames()
            throws IOException
    {
        FileOpener opener = opener();
        Path small = Files.writeString(directory.resolve("small"), "schema");
        for (String name : List.of(small.toString(), "file:" + small, "file://" + small)) {
            assertEquals("schema", new String(opener.readAll(null, name), UTF_8));
        }
    }

    /** Anyone who declares a table may name it: it must take neither all memory nor all time. */
    @Test
    void whatHasNoEndIsNoSmallFile()
            throws IOException
    {
        Path large = directory.resolve("large");
        try (RandomAccessFile file = new RandomAccessFile(large.toFile(), "rw")) {
            file.setLength(1L << 32);
        }
        for (String name : List.of("/dev/zero", directory.toString(), large.toString(), directory.resolve("gone").toString())) {
            assertThrows(IOException.class, () -> opener().readAll(null, name), name);
        }
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
        return opener().open(null, planned);
    }

    private static FileOpener opener()
    {
        return FileOpener.create(Set.of(), Map.of(), Optional.empty(), "lake", null);
    }
}
