package io.skipbridge.trino.read.hudi;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.ConstantColumns;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.ReadCounters;
import io.skipbridge.trino.read.file.ReadFailure;
import io.skipbridge.trino.read.merge.MergedPages;
import io.skipbridge.trino.read.merge.SliceMerger;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.skipbridge.trino.read.page.SplitPageSource;
import io.skipbridge.trino.read.parquet.CombinedFilesLoader;
import io.skipbridge.trino.split.LogFile;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.Page;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.TupleDomain;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * Reads slices whose logs are merged, one after another. The predicate skips only slices whose constants, such as partition keys, contradict it.
 * It never skips rows of a slice's files: a log may change or delete any of them.
 */
public final class MergePageSource
        extends SplitPageSource
{
    private final List<BridgeColumnHandle> channels;
    private final List<SliceRequest.Column> columns;
    private final Supplier<TupleDomain<BridgeColumnHandle>> predicate;
    private final List<PlannedFile> slices;
    private final SlicesAhead ahead;
    private final SliceOpener files;
    private final Supplier<SliceMerger> merger;
    private final ConstantColumns constants;
    private int next;
    private PlannedFile slice;
    private PlannedSliceFiles open;
    private MergedPages merged;

    /** Opens the files of a slice, whose first reads were started already. */
    @FunctionalInterface
    public interface SliceOpener
    {
        PlannedSliceFiles open(PlannedFile slice, SlicesAhead.Beginning first, ReadCounters counters);
    }

    /**
     * @param files opens the files of a slice
     * @param merger is asked for when there is a slice to merge
     */
    public MergePageSource(FileScan scan, List<PlannedFile> slices, SliceOpener files, Supplier<SliceMerger> merger)
    {
        this.channels = scan.channels();
        this.columns = channels.stream().filter(BridgeColumnHandle::isData).map(each -> new SliceRequest.Column(each.name(), each.type())).toList();
        this.predicate = scan.predicate();
        this.slices = slices;
        this.files = files;
        this.merger = merger;
        this.constants = new ConstantColumns(channels);
        this.ahead = new SlicesAhead(scan, constants, slices, CombinedFilesLoader.RANGE);
    }

    @Override
    public CompletableFuture<?> isBlocked()
    {
        return isFinished() || merged != null || next == slices.size() ? NOT_BLOCKED : ahead.blocked(next);
    }

    @Override
    protected SourcePage nextPage()
            throws IOException
    {
        while (merged != null || openNext()) {
            Page page = merged.next();
            if (page != null) {
                return SourcePage.create(withConstants(page));
            }
            closeSlice();
            if (!isBlocked().isDone()) {
                return null;
            }
        }
        end();
        return null;
    }

    @Override
    protected RuntimeException failure(Throwable problem)
    {
        return failure(problem, slice == null ? "split" : slice.path());
    }

    private boolean openNext()
    {
        while (next < slices.size()) {
            slice = named(slices.get(next++));
            if (!constants.mayMatch(slice, predicate.get())) {
                counters.skipFile();
                continue;
            }
            counters.openFiles(slice.logs().size());
            PlannedFile planned = slices.get(next - 1);
            open = opened(planned, ahead.take(next - 1, counters));
            merged = merger.get().merge(new SliceRequest(
                    planned.reader().properties(),
                    planned.size() < 0 ? Optional.empty() : Optional.of(planned.path()),
                    planned.logs().stream().map(log -> new SliceRequest.Log(log.path(), log.size())).toList(),
                    columns,
                    open));
            return true;
        }
        return false;
    }

    private PlannedSliceFiles opened(PlannedFile planned, SlicesAhead.Beginning first)
    {
        try {
            return files.open(planned, first, counters);
        }
        catch (RuntimeException e) {
            first.close();
            throw e;
        }
    }

    /** The slice with the name, size and time of its first log if it has no base file. */
    private static PlannedFile named(PlannedFile slice)
    {
        if (slice.size() >= 0) {
            return slice;
        }
        LogFile log = slice.logs().getFirst();
        return new PlannedFile(log.path(), 0, log.size(), log.size(), log.modifiedMillis(), slice.partition(), slice.reader(), slice.logs());
    }

    private Page withConstants(Page page)
    {
        Block[] values = constants.blocks(slice);
        Block[] blocks = new Block[channels.size()];
        int data = 0;
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = values[i] == null ? page.getBlock(data++) : RunLengthEncodedBlock.create(values[i], page.getPositionCount());
        }
        return new Page(page.getPositionCount(), blocks);
    }

    private void closeSlice()
            throws IOException
    {
        try (PlannedSliceFiles _ = open; MergedPages _ = merged) {
            merged = null;
            open = null;
        }
    }

    /** An error of the plugin's own readers is kept; any other one is of the merger. */
    private static RuntimeException failure(Throwable problem, String path)
    {
        for (Throwable cause = problem; cause != null; cause = cause.getCause()) {
            switch (cause) {
                case TrinoException e -> {
                    return ReadFailure.of(e, path);
                }
                case UnsupportedSlice e -> {
                    return new TrinoException(BridgeErrorCode.MERGE_ON_READ, "File slice %s: %s".formatted(path, e.getMessage()), problem);
                }
                default -> {}
            }
        }
        for (Throwable cause = problem; cause != null; cause = cause.getCause()) {
            if (cause instanceof UnsupportedOperationException) {
                return new TrinoException(
                        BridgeErrorCode.MERGE_ON_READ,
                        "File slice %s: its merging is not supported: %s. Read the table once it is compacted, or with Spark".formatted(path, cause.getMessage()),
                        problem);
            }
            if (cause instanceof ClassNotFoundException || cause instanceof LinkageError) {
                return new TrinoException(
                        BridgeErrorCode.MERGE_ON_READ,
                        "File slice %s: its merging needs %s. Put its jar into the plugin's directory hudi, or read the table once it is compacted".formatted(path, cause.getMessage()),
                        problem);
            }
        }
        String reason = reason(problem);
        return problem instanceof IOException
                ? new TrinoException(BridgeErrorCode.FILE_UNREADABLE, "File slice %s cannot be read: %s".formatted(path, reason), problem)
                : new TrinoException(BridgeErrorCode.FILE_CORRUPT, "File slice %s cannot be merged: %s".formatted(path, reason), problem);
    }

    private static String reason(Throwable problem)
    {
        return problem.getCause() == null ? problem.toString() : "%s: %s".formatted(problem, problem.getCause());
    }

    @Override
    public long getMemoryUsage()
    {
        return ahead.bytes() + (merged == null ? 0 : merged.memoryBytes() + open.memoryBytes());
    }

    @Override
    protected void closeFiles()
            throws IOException
    {
        next = slices.size();
        ahead.close();
        closeSlice();
    }
}
