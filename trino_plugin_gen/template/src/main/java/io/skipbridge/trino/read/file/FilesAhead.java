package io.skipbridge.trino.read.file;

import io.skipbridge.trino.read.footer.FooterBytes;
import io.skipbridge.trino.read.storage.AheadRead;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetDataSourceId;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

import static io.trino.spi.connector.ConnectorPageSource.NOT_BLOCKED;

/**
 * The files of a split, one after the other. While one is in work, the next ones are read: all of a small file, a range of a large one.
 * Files of the local file system are read when they are needed, since a change of threads would take longer than the read.
 */
public final class FilesAhead
        implements Closeable
{
    private static final long MAX_BYTES = 32 << 20;
    private static final int FEW = 8;
    private static final long FEW_BYTES = 1 << 20;

    private final FileScan scan;
    private final ConstantColumns constants;
    private final ReadCounters counters;
    private final List<PlannedFile> files;
    private final AheadRange range;
    private final AheadWindow window;
    private final ArrayDeque<Started> started = new ArrayDeque<>();
    private int position;
    private int nextToStart;
    private long startedBytes;
    private int awaited = -1;
    private long awaitedSince;

    private record Started(int ordinal, AheadRead read) {}

    /** @param first the read of the first file's range, if it was started already */
    public FilesAhead(FileScan scan, ConstantColumns constants, ReadCounters counters, List<PlannedFile> files, AheadRange range, Optional<AheadRead> first)
    {
        this(scan, constants, counters, files, range);
        first.ifPresent(read -> {
            started.add(new Started(0, read));
            startedBytes = read.length();
            nextToStart = 1;
        });
    }

    public FilesAhead(FileScan scan, ConstantColumns constants, ReadCounters counters, List<PlannedFile> files, AheadRange range)
    {
        this.scan = scan;
        this.constants = constants;
        this.counters = counters;
        this.files = files;
        this.range = range;
        this.window = scan.newWindow(few(files, range));
    }

    /** So many of the first files are small that their reads are cheaper than a wait for each: at most eight, of a MB together. */
    private static int few(List<PlannedFile> files, AheadRange range)
    {
        int count = 0;
        long bytes = 0;
        for (PlannedFile file : files) {
            bytes += range.length(file);
            if (count == FEW || bytes > FEW_BYTES || file.size() > AheadRange.SMALL_FILE) {
                break;
            }
            count++;
        }
        return Math.max(1, count);
    }

    /** The window of the page source, for reads inside of files too. */
    public AheadWindow window()
    {
        return window;
    }

    public boolean hasNext()
    {
        return position < files.size();
    }

    /** The next file if the predicate may match its constants; null if it was skipped. */
    public PlannedFile next()
    {
        PlannedFile file = files.get(position++);
        if (mayMatch(file)) {
            return file;
        }
        counters.skipFile();
        takeStarted().ifPresent(AheadRead::close);
        return null;
    }

    /** Whether the next file's bytes are still on their way. */
    public boolean wouldWait()
    {
        if (!hasNext() || !scan.files().remote(files.get(position))) {
            return false;
        }
        return !isStarted() || !started.element().read().isDone();
    }

    /** Whether the next file is the first of those that were started. */
    private boolean isStarted()
    {
        return !started.isEmpty() && started.element().ordinal() == position;
    }

    /**
     * Completes when the next file's bytes are there. Starts its read, and more. A page source that says so holds no thread of the engine meanwhile, so
     * that other splits and queries use it. A read that was started before is not worth that: it ends soon, and the engine's change of splits takes
     * longer.
     */
    public CompletableFuture<?> blocked()
    {
        if (!hasNext() || !scan.files().remote(files.get(position)) || !mayMatch(files.get(position))) {
            return NOT_BLOCKED;
        }
        if (awaited < position) {
            dropStarted(position);
            if (isStarted()) {
                return NOT_BLOCKED;
            }
            startMore();
            if (!isStarted()) {
                return NOT_BLOCKED;
            }
            awaited = position;
            awaitedSince = System.nanoTime();
            window.took(true);
            startMore();
        }
        return started.element().read().done();
    }

    /** The range of the file that {@link #next} returned. */
    public byte[] read(PlannedFile file)
            throws IOException
    {
        counters.openFiles(1);
        if (!scan.files().remote(file)) {
            return readCounted(file, range.offset(file), range.length(file));
        }
        Optional<AheadRead> ahead = takeStarted();
        boolean wasAwaited = awaited == position - 1;
        if (!wasAwaited) {
            window.took(ahead.isEmpty() || !ahead.get().isDone());
        }
        startMore();
        long start = wasAwaited ? awaitedSince : System.nanoTime();
        byte[] bytes = ahead.isPresent() ? ahead.get().take() : readRange(file, range.offset(file), range.length(file));
        counters.read(bytes.length, System.nanoTime() - start);
        return bytes;
    }

    /** The footer of the file that {@link #next} returned, of whose end the range is. */
    public FooterBytes footer(PlannedFile file, ParquetDataSourceId id)
            throws IOException
    {
        byte[] end = read(file);
        int needed = FooterBytes.lengthWithPostscript(end, file.size(), id);
        return FooterBytes.in(needed <= end.length ? end : readCounted(file, file.size() - needed, needed), file.size(), id);
    }

    /** Bytes of reads that were started and not taken. */
    public long bytes()
    {
        return startedBytes;
    }

    private boolean mayMatch(PlannedFile file)
    {
        return constants.mayMatch(file, scan.predicate().get());
    }

    /** The read of the current file, if it was started. */
    private Optional<AheadRead> takeStarted()
    {
        int current = position - 1;
        dropStarted(current);
        if (started.isEmpty() || started.peek().ordinal() > current) {
            return Optional.empty();
        }
        AheadRead read = started.poll().read();
        startedBytes -= read.length();
        return Optional.of(read);
    }

    /** Stops the reads of files before this one. */
    private void dropStarted(int ordinal)
    {
        while (!started.isEmpty() && started.peek().ordinal() < ordinal) {
            AheadRead read = started.poll().read();
            startedBytes -= read.length();
            read.close();
        }
    }

    private void startMore()
    {
        nextToStart = Math.max(nextToStart, position);
        while (nextToStart < files.size() && started.size() < window.size()) {
            PlannedFile file = files.get(nextToStart);
            if (scan.files().remote(file) && mayMatch(file)) {
                int length = range.length(file);
                if (startedBytes > 0 && startedBytes + length > MAX_BYTES) {
                    return;
                }
                Optional<AheadRead> read = AheadRead.start(scan.files().budget(), length, () -> readRange(file, range.offset(file), length));
                if (read.isEmpty()) {
                    return;
                }
                started.add(new Started(nextToStart, read.get()));
                startedBytes += length;
            }
            nextToStart++;
        }
    }

    private byte[] readCounted(PlannedFile file, long offset, int length)
            throws IOException
    {
        try (ReadableFile opened = counters.counted(scan.files().open(scan.session(), file))) {
            return readRange(opened, offset, length);
        }
    }

    /** A range of a file, read on the caller's thread. */
    public byte[] readRange(PlannedFile file, long offset, int length)
            throws IOException
    {
        try (ReadableFile opened = scan.files().open(scan.session(), file)) {
            return readRange(opened, offset, length);
        }
    }

    private static byte[] readRange(ReadableFile opened, long offset, int length)
            throws IOException
    {
        byte[] bytes = new byte[length];
        opened.readFully(offset, bytes, 0, length);
        return bytes;
    }

    @Override
    public void close()
    {
        started.forEach(each -> each.read().close());
        started.clear();
        startedBytes = 0;
        position = files.size();
    }
}
