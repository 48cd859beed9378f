package io.skipbridge.trino.hudi;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;

/** Where log rows beyond the memory limit go: a directory below one that only this user may enter. It is made by the first such row. */
final class SpillDirectory
        implements Closeable
{
    private static Path parent;

    private final Path path;

    SpillDirectory()
    {
        this.path = parent().resolve(UUID.randomUUID().toString());
    }

    private static synchronized Path parent()
    {
        try {
            if (parent == null || !Files.isDirectory(parent)) {
                parent = Files.createTempDirectory("skipbridge-hudi-");
                parent.toFile().deleteOnExit();
            }
            return parent;
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The directories of slices that are being read. */
    static List<Path> existing()
    {
        try (Stream<Path> all = Files.list(parent())) {
            return all.toList();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Path path()
    {
        return path;
    }

    @Override
    public void close()
            throws IOException
    {
        if (Files.notExists(path)) {
            return;
        }
        List<Path> found;
        try (Stream<Path> all = Files.walk(path)) {
            found = all.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path each : found) {
            Files.deleteIfExists(each);
        }
    }
}
