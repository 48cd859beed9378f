package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.split.PlannedFile;
import io.trino.filesystem.TrinoInput;
import io.trino.filesystem.TrinoInputFile;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Optional;

/** A file of an object store, read with Trino's file system. Each reply is checked to be of the planned file; opening sends no request. */
final class RemoteFile
        implements ReadableFile
{
    /** HTTP headers have whole seconds; listings of some stores have milliseconds. */
    private static final long TIME_GRAIN = 1_000;

    private final PlannedFile planned;
    private final TrinoInputFile file;
    private final TrinoInput input;

    RemoteFile(PlannedFile planned, TrinoInputFile file)
            throws IOException
    {
        this.planned = planned;
        this.file = file;
        this.input = file.newInput();
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
        ObjectHeaders.forget();
        try {
            input.readFully(position, buffer, offset, length);
        }
        catch (FileNotFoundException e) {
            throw FileVersions.gone(planned, e);
        }
        catch (IOException e) {
            // a file that became shorter than the range has changed
            try {
                check();
            }
            catch (IOException suppressed) {
                e.addSuppressed(suppressed);
            }
            throw e;
        }
        check();
    }

    private void check()
            throws IOException
    {
        Optional<ObjectHeaders.Version> version = ObjectHeaders.last();
        try {
            long size = version.isPresent() ? version.get().size() : file.length();
            long modifiedMillis = version.isPresent() ? version.get().modifiedMillis() : file.lastModified().toEpochMilli();
            FileVersions.check(planned, size, modifiedMillis, TIME_GRAIN);
        }
        catch (FileNotFoundException e) {
            throw FileVersions.gone(planned, e);
        }
    }

    @Override
    public void close()
            throws IOException
    {
        input.close();
    }
}
