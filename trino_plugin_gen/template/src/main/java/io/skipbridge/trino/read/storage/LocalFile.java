package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.split.PlannedFile;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;

/**
 * A file of the local file system. Its name is looked up after each read. If the planned file is there after the first one, the open file is it. Later
 * the name may be deleted or given to another file, but the open file may not be written.
 */
final class LocalFile
        implements ReadableFile
{
    private final PlannedFile planned;
    private final boolean mayGrow;
    private final Path path;
    private final RandomAccessFile file;
    private boolean known;
    private Object key;
    private long next;

    /** @param mayGrow whether more bytes after the planned ones are no change */
    LocalFile(PlannedFile planned, String path, boolean mayGrow)
            throws IOException
    {
        this.planned = planned;
        this.mayGrow = mayGrow;
        File name = new File(path);
        this.path = name.toPath();
        this.file = new RandomAccessFile(name, "r");
    }

    @Override
    public long size()
    {
        return planned.size();
    }

    @Override
    public void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException
    {
        try {
            if (position != next) {
                file.seek(position);
            }
            file.readFully(buffer, offset, length);
            next = position + length;
        }
        catch (IOException e) {
            // a file that became shorter than the range has changed
            check();
            throw e;
        }
        check();
    }

    private void check()
            throws IOException
    {
        BasicFileAttributes now;
        try {
            now = Files.readAttributes(path, BasicFileAttributes.class);
        }
        catch (NoSuchFileException e) {
            if (known) {
                return;
            }
            throw FileVersions.gone(planned, e);
        }
        if (known && !Objects.equals(key, now.fileKey())) {
            return;
        }
        FileVersions.check(planned, mayGrow, now.size(), now.lastModifiedTime().toMillis(), 1);
        known = true;
        key = now.fileKey();
    }

    @Override
    public void close()
            throws IOException
    {
        file.close();
    }
}
