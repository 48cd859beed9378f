package io.skipbridge.trino.read.hudi;

import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.AheadWindow;
import io.skipbridge.trino.read.file.ConstantColumns;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.PlannedBytes;
import io.skipbridge.trino.read.file.ReadCounters;
import io.skipbridge.trino.read.merge.SliceFiles;
import io.skipbridge.trino.read.storage.AheadRead;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.LogFile;
import io.skipbridge.trino.split.PlannedFile;

import java.io.Closeable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

import static io.trino.spi.connector.ConnectorPageSource.NOT_BLOCKED;

/**
 * Slices of remote stores, one after the other. All logs and the base file of the slice that is merged next are requested at once. While it is merged,
 * those of the slices behind it are read, as many slices as the window allows.
 */
public final class SlicesAhead
        implements Closeable
{
    private static final long MAX_BYTES = 32 << 20;

    private final FileScan scan;
    private final ConstantColumns constants;
    private final List<PlannedFile> slices;
    private final AheadRange base;
    private final AheadWindow window;
    private final ArrayDeque<Beginning> started = new ArrayDeque<>();
    private int nextToStart;
    private int awaited = -1;
    private long awaitedSince;

    /** @param base which bytes of base files are read ahead */
    SlicesAhead(FileScan scan, ConstantColumns constants, List<PlannedFile> slices, AheadRange base)
    {
        this.scan = scan;
        this.constants = constants;
        this.slices = slices;
        this.base = base;
        this.window = scan.newWindow(1);
    }

    /** Completes when the first reads of the slice with this ordinal are done. Starts them, and more; those that were started before end soon. */
    CompletableFuture<?> blocked(int ordinal)
    {
        boolean early = !started.isEmpty() && started.element().ordinal <= ordinal;
        if (awaited != ordinal && (early || !constants.mayMatch(slices.get(ordinal), scan.predicate().get()))) {
            return NOT_BLOCKED;
        }
        CompletableFuture<?> done = begun(ordinal).done();
        if (awaited != ordinal && !done.isDone()) {
            awaited = ordinal;
            awaitedSince = System.nanoTime();
            window.took(true);
            startMore();
        }
        return done;
    }

    /** The reads of the slice with this ordinal. Slices before it are asked for no more. */
    Beginning take(int ordinal, ReadCounters counters)
    {
        Beginning beginning = begun(ordinal);
        if (awaited == ordinal) {
            counters.read(0, System.nanoTime() - awaitedSince);
        }
        else {
            window.took(!beginning.done().isDone());
        }
        started.poll();
        startMore();
        return beginning;
    }

    private Beginning begun(int ordinal)
    {
        while (!started.isEmpty() && started.peek().ordinal < ordinal) {
            started.poll().close();
        }
        if (started.isEmpty() || started.peek().ordinal > ordinal) {
            started.addFirst(start(ordinal));
            nextToStart = Math.max(nextToStart, ordinal + 1);
        }
        return started.element();
    }

    private void startMore()
    {
        long bytes = bytes();
        while (nextToStart < slices.size() && started.size() < window.size() && bytes < MAX_BYTES) {
            if (constants.mayMatch(slices.get(nextToStart), scan.predicate().get())) {
                Beginning more = start(nextToStart);
                if (more.isEmpty()) {
                    break;
                }
                started.add(more);
                bytes += more.bytes();
            }
            nextToStart++;
        }
    }

    /** Bytes that were read, or are on their way, of slices that were not taken. */
    long bytes()
    {
        return started.stream().mapToLong(Beginning::bytes).sum();
    }

    private Beginning start(int ordinal)
    {
        PlannedFile slice = slices.get(ordinal);
        Beginning beginning = new Beginning(ordinal, slice.logs().size());
        for (LogFile log : slice.logs()) {
            beginning.logs.add(scan.files().remote(log.path()) ? start((int) Math.min(log.size(), SliceFiles.LOG_PIECE), 0, () -> scan.files().openLog(scan.session(), log)) : Optional.empty());
        }
        if (slice.size() > 0 && scan.files().remote(slice)) {
            beginning.base = start(base.length(slice), base.offset(slice), () -> scan.files().open(scan.session(), slice));
        }
        return beginning;
    }

    private Optional<AheadRead> start(int length, long offset, PlannedBytes.Opener opener)
    {
        return AheadRead.start(scan.files().budget(), length, () -> {
            try (ReadableFile opened = opener.open()) {
                byte[] bytes = new byte[length];
                opened.readFully(offset, bytes, 0, length);
                return bytes;
            }
        });
    }

    @Override
    public void close()
    {
        started.forEach(Beginning::close);
        started.clear();
        nextToStart = slices.size();
    }

    /** The first reads of one slice's files. Each is given away once. */
    public final class Beginning
            implements Closeable
    {
        private final int ordinal;
        private final List<Optional<AheadRead>> logs;
        private Optional<AheadRead> base = Optional.empty();

        private Beginning(int ordinal, int logs)
        {
            this.ordinal = ordinal;
            this.logs = new ArrayList<>(logs);
        }

        /** The read of a log's first piece, if it was started and not taken. */
        Optional<AheadRead> takeLog(int log)
        {
            return logs.set(log, Optional.empty());
        }

        /** The read of the base file, if it was started and not taken. */
        Optional<AheadRead> takeBase()
        {
            Optional<AheadRead> read = base;
            base = Optional.empty();
            return read;
        }

        private CompletableFuture<?> done()
        {
            return CompletableFuture.allOf(Stream.concat(logs.stream(), Stream.of(base)).flatMap(Optional::stream).map(AheadRead::done).toArray(CompletableFuture[]::new));
        }

        private boolean isEmpty()
        {
            return bytes() == 0;
        }

        /** Bytes of reads that nobody has taken. */
        long bytes()
        {
            return base.map(AheadRead::length).orElse(0) + logs.stream().flatMap(Optional::stream).mapToLong(AheadRead::length).sum();
        }

        @Override
        public void close()
        {
            takeBase().ifPresent(AheadRead::close);
            for (int i = 0; i < logs.size(); i++) {
                logs.set(i, Optional.empty()).ifPresent(AheadRead::close);
            }
        }
    }
}
