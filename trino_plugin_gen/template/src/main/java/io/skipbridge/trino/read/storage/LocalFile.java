package io.skipbridge.trino.read.storage;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.attribute.BasicFileAttributes;

/** A file of the local file system. */
final class LocalFile
        implements ReadableFile
{
    private final RandomAccessFile file;
    private final long size;
    private final long modifiedMillis;
    private long next;

    /** Opens first and looks then: if size and time are still those of the planned file, it is the planned file that was opened. */
    LocalFile(String path)
            throws IOException
    {
        File name = new File(path);
        this.file = new RandomAccessFile(name, "r");
        try {
            BasicFileAttributes attributes = Files.readAttributes(name.toPath(), BasicFileAttributes.class);
            this.size = attributes.size();
            this.modifiedMillis = attributes.lastModifiedTime().toMillis();
        }
        catch (IOException | RuntimeException e) {
            file.close();
            throw e;
        }
    }

    @Override
    public long size()
    {
        return size;
    }

    long modifiedMillis()
    {
        return modifiedMillis;
    }

    @Override
    public void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException
    {
        if (position != next) {
            file.seek(position);
        }
        file.readFully(buffer, offset, length);
        next = position + length;
    }

    @Override
    public void close()
            throws IOException
    {
        file.close();
    }
}
