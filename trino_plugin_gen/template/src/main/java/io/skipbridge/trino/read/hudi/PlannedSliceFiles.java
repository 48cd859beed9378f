package io.skipbridge.trino.read.hudi;

import com.google.common.io.Closer;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.ReadCounters;
import io.skipbridge.trino.read.file.ReadFailure;
import io.skipbridge.trino.read.merge.LogColumns;
import io.skipbridge.trino.read.merge.RowPages;
import io.skipbridge.trino.read.merge.SliceFiles;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.skipbridge.trino.read.parquet.BridgePageSource;
import io.skipbridge.trino.read.parquet.ScanContext;
import io.skipbridge.trino.read.storage.AheadRead;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.Page;
import io.trino.spi.classloader.ThreadContextClassLoader;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.SourcePage;

import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;

/** The files of a planned slice. Logs are read up to their planned size. */
public final class PlannedSliceFiles
        implements SliceFiles, Closeable
{
    private final PlannedFile slice;
    private final FileScan scan;
    private final Function<FileScan, ScanContext> contexts;
    private final SlicesAhead.Beginning ahead;
    private final ReadCounters counters;
    private final ReadableFile[] logs;
    private final Optional<LogVersions> versions;
    private final List<Rows> open = new ArrayList<>();

    /**
     * @param ahead the first reads of the files
     * @param versions of the slice's reader
     */
    public PlannedSliceFiles(
            PlannedFile slice,
            SlicesAhead.Beginning ahead,
            Optional<LogVersions> versions,
            FileScan scan,
            Function<FileScan, ScanContext> contexts,
            ReadCounters counters)
    {
        this.slice = slice;
        this.ahead = ahead;
        this.scan = scan;
        this.contexts = contexts;
        this.counters = counters;
        this.logs = new ReadableFile[slice.logs().size()];
        this.versions = versions;
    }

    @Override
    public void readLog(int log, long position, byte[] buffer, int offset, int length)
    {
        try (ThreadContextClassLoader _ = pluginClasses()) {
            if (position == 0 && tookAhead(log, buffer, offset, length)) {
                return;
            }
            if (logs[log] == null) {
                logs[log] = counters.counted(scan.files().openLog(scan.session(), slice.logs().get(log)));
            }
            logs[log].readFully(position, buffer, offset, length);
        }
        catch (IOException e) {
            // a merger would take the end of a file for the end of its log
            throw ReadFailure.of(e, slice.logs().get(log).path());
        }
    }

    /** The first piece of a log, if it was read ahead. */
    private boolean tookAhead(int log, byte[] buffer, int offset, int length)
            throws IOException
    {
        Optional<AheadRead> read = ahead.takeLog(log);
        if (read.isEmpty() || read.get().length() != length) {
            read.ifPresent(AheadRead::close);
            return false;
        }
        long begun = System.nanoTime();
        System.arraycopy(read.get().take(), 0, buffer, offset, length);
        counters.read(length, System.nanoTime() - begun);
        return true;
    }

    @Override
    public RowPages readBase(List<SliceRequest.Column> columns)
    {
        if (slice.path().endsWith(".orc")) {
            throw new UnsupportedSlice("logs over base files of ORC are not merged. Read the table once it is compacted, or with Spark");
        }
        PlannedFile whole = new PlannedFile(slice.path(), 0, slice.size(), slice.size(), slice.modifiedMillis(), slice.partition(), slice.reader(), List.of(), slice.etagHash());
        return rows(ByIdPageSource.of(scan.unfiltered(handles(columns)), List.of(whole), (stored, files) -> new BridgePageSource(contexts.apply(stored), files, ahead.takeBase())));
    }

    @Override
    public RowPages readInlineParquet(int log, long position, int length, List<SliceRequest.Column> columns)
            throws IOException
    {
        byte[] bytes = new byte[length];
        readLog(log, position, bytes, 0, length);
        String name = "%s at byte %d".formatted(slice.logs().get(log).path(), position);
        PlannedFile block = new PlannedFile(name, 0, length, length, -1, slice.partition(), slice.reader(), List.of());
        return rows(BridgePageSource.ofBytes(contexts.apply(scan.unfiltered(handles(columns))), block, bytes));
    }

    @Override
    public Optional<LogColumns> logColumns(String instant)
    {
        return versions.map(each -> each.at(instant));
    }

    private static List<BridgeColumnHandle> handles(List<SliceRequest.Column> columns)
    {
        return columns.stream().map(column -> new BridgeColumnHandle(column.name(), column.type(), ColumnKind.DATA, BridgeColumnHandle.NO_POSITION)).toList();
    }

    private Rows rows(ConnectorPageSource source)
    {
        Rows rows = new Rows(source);
        open.add(rows);
        return rows;
    }

    /** The stores' clients look up classes by the thread's loader, which is the merger's here. */
    private static ThreadContextClassLoader pluginClasses()
    {
        return new ThreadContextClassLoader(PlannedSliceFiles.class.getClassLoader());
    }

    long memoryBytes()
    {
        return ahead.bytes() + open.stream().mapToLong(rows -> rows.source.getMemoryUsage()).sum();
    }

    @Override
    public void close()
            throws IOException
    {
        try (Closer all = Closer.create()) {
            for (ReadableFile log : logs) {
                all.register(log);
            }
            List.copyOf(open).forEach(all::register);
            all.register(ahead);
        }
    }

    private final class Rows
            implements RowPages
    {
        private final ConnectorPageSource source;
        private long countedBytes;
        private long countedNanos;

        Rows(ConnectorPageSource source)
        {
            this.source = source;
        }

        @Override
        public Page next()
                throws IOException
        {
            try (ThreadContextClassLoader _ = pluginClasses()) {
                while (!source.isFinished()) {
                    source.isBlocked().get();
                    SourcePage page = source.getNextSourcePage();
                    Page whole = page == null ? null : page.getPage();
                    counters.read(source.getCompletedBytes() - countedBytes, source.getReadTimeNanos() - countedNanos);
                    countedBytes = source.getCompletedBytes();
                    countedNanos = source.getReadTimeNanos();
                    if (whole != null) {
                        return whole;
                    }
                }
                return null;
            }
            catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new InterruptedIOException("interrupted while reading");
            }
            catch (ExecutionException e) {
                throw new IOException(e.getCause());
            }
        }

        @Override
        public void close()
                throws IOException
        {
            open.remove(this);
            source.close();
        }
    }
}
