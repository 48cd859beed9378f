package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.split.PlannedFile;
import io.trino.filesystem.TrinoInput;
import io.trino.filesystem.TrinoInputFile;
import io.trino.spi.TrinoException;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/**
 * A file of a store, read with Trino's file system. Opening sends no request. After each read the file is checked to be the planned one still, so that
 * the bytes are of the planned file: it was there when the planner looked, and is there after the read. Only then the bytes are given. S3 tells size
 * and time in the headers of the reply; other stores are asked for them with a request of its own. Within a second, S3's files may be written again
 * under the same size and time: then their ETags differ, from that in the plan or from those of earlier reads.
 */
final class RemoteFile
        implements ReadableFile
{
    /** HTTP headers have whole seconds; listings of some stores have milliseconds. */
    private static final long HTTP_GRAIN = 1_000;

    private final PlannedFile planned;
    private final Store store;
    private final boolean mayGrow;
    private final Supplier<TrinoInputFile> files;
    private final long timeGrain;
    private final AtomicReference<String> etag;
    private TrinoInput input;

    /**
     * @param files gives another object at each call: one remembers the size and the time that it saw first
     * @param mayGrow whether more bytes after the planned ones are no change
     * @param etag of the version that was read first; all that read one file for one split share it, since rows need bytes of one version
     */
    RemoteFile(PlannedFile planned, Store store, Supplier<TrinoInputFile> files, boolean mayGrow, AtomicReference<String> etag)
    {
        this.planned = planned;
        this.store = store;
        this.mayGrow = mayGrow;
        this.etag = etag;
        this.files = files;
        this.timeGrain = store == Store.HDFS ? 1 : HTTP_GRAIN;
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
            readPlanned(position, buffer, offset, length);
        }
        catch (IOException e) {
            throw store == Store.AZURE ? AzureAnswer.of(e) : e;
        }
    }

    private void readPlanned(long position, byte[] buffer, int offset, int length)
            throws IOException
    {
        ObjectHeaders.forget();
        try {
            read(position, buffer, offset, length);
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

    private void read(long position, byte[] buffer, int offset, int length)
            throws IOException
    {
        try {
            if (input == null) {
                input = files.get().newInput();
            }
            input.readFully(position, buffer, offset, length);
        }
        catch (TrinoException e) {
            throw e;
        }
        catch (RuntimeException e) {
            throw ofStore(e);
        }
    }

    private void check()
            throws IOException
    {
        if (ObjectHeaders.rangeIgnored()) {
            throw new IOException("the store gave the whole file where a part was asked for: it, or a proxy before it, does not heed the header Range");
        }
        Optional<ObjectHeaders.Version> version = ObjectHeaders.last();
        try {
            if (version.isPresent()) {
                FileVersions.check(planned, mayGrow, version.get().size(), version.get().modifiedMillis(), timeGrain);
                if (!mayGrow) {
                    FileVersions.checkEtag(planned, version.get().etagHash());
                }
                checkTag(version.get().etag());
            }
            else {
                TrinoInputFile now = files.get();
                FileVersions.check(planned, mayGrow, now.length(), now.lastModified().toEpochMilli(), timeGrain);
            }
        }
        catch (FileNotFoundException e) {
            throw FileVersions.gone(planned, e);
        }
        catch (TrinoException e) {
            throw e;
        }
        catch (RuntimeException e) {
            throw ofStore(e);
        }
    }

    private void checkTag(Optional<String> now)
    {
        if (mayGrow || now.isEmpty()) {
            return;
        }
        String first = etag.compareAndExchange(null, now.get());
        if (first != null && !first.equals(now.get())) {
            throw FileVersions.rewritten(planned);
        }
    }

    /** A client's own exception tells of the store, not of the file's content. */
    private static IOException ofStore(RuntimeException e)
    {
        return new IOException(e.toString(), e);
    }

    @Override
    public void close()
            throws IOException
    {
        if (input != null) {
            input.close();
        }
    }
}
