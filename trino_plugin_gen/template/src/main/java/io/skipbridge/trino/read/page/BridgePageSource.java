package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.memory.context.AggregatedMemoryContext;
import io.trino.parquet.reader.ParquetReader;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.io.IOException;
import java.util.List;

import static io.trino.memory.context.AggregatedMemoryContext.newSimpleAggregatedMemoryContext;

/** Reads a split's files with Trino's Parquet reader. Joins small pages; passes large ones on with their columns unread. */
final class BridgePageSource
        extends SplitPageSource
{
    /** The smallest page that is passed on with its columns unread. */
    private static final int LAZY_POSITIONS = 4_096;

    private final ScanContext scan;
    private final CombinedFilesLoader loader;
    private final PageJoiner joiner;
    private final Block[] nulls;
    private final AggregatedMemoryContext memory = newSimpleAggregatedMemoryContext();
    private CombinedFiles combined;
    private int[] columnOfChannel;
    private ParquetReader reader;
    private String current;

    BridgePageSource(ScanContext scan, List<PlannedFile> files)
    {
        this.scan = scan;
        this.loader = new CombinedFilesLoader(scan, new ConstantColumns(scan.channels()), counters, files);
        this.joiner = new PageJoiner(scan.channels().stream().map(BridgeColumnHandle::type).toList());
        this.nulls = scan.channels().stream().map(channel -> channel.type().createNullBlock()).toArray(Block[]::new);
        this.current = files.isEmpty() ? "split without files" : files.getFirst().path();
    }

    /** Reads a file whose bytes are in memory. */
    static BridgePageSource ofBytes(ScanContext scan, PlannedFile file, byte[] bytes)
            throws IOException
    {
        BridgePageSource source = new BridgePageSource(scan, List.of());
        source.current = file.path();
        try {
            source.loader.add(file, bytes);
        }
        catch (IOException | RuntimeException e) {
            throw ReadFailure.of(e, file.path());
        }
        return source;
    }

    @Override
    RuntimeException failure(Throwable problem)
    {
        return ReadFailure.of(problem, current);
    }

    @Override
    SourcePage nextPage()
            throws IOException
    {
        while (true) {
            if (reader == null && !joiner.isEmpty() && loader.wouldWait()) {
                // the engine may need no more rows than these
                return SourcePage.create(joiner.join());
            }
            if (reader == null && !openFiles()) {
                end();
                return joiner.isEmpty() ? null : SourcePage.create(joiner.join());
            }
            if (positions() > 0) {
                combined.readOn();
            }
            SourcePage page = reader.nextPage();
            if (page == null) {
                closeReader();
                continue;
            }
            int file = combined.fileOfRow(reader.lastBatchStartRow());
            current = combined.file(file).path();
            SourcePage mapped = new MappedSourcePage(page, columnOfChannel, constants(file), combined.schema()::unsigned);
            if (joiner.isEmpty() && page.getPositionCount() >= LAZY_POSITIONS) {
                return mapped;
            }
            joiner.add(blocks(mapped), mapped.getPositionCount());
            if (joiner.isFull()) {
                return SourcePage.create(joiner.join());
            }
        }
    }

    private static Block[] blocks(SourcePage page)
    {
        Block[] blocks = new Block[page.getChannelCount()];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = page.getBlock(i);
        }
        return blocks;
    }

    /** The file's constants, and NULL for columns that the file does not have. */
    private Block[] constants(int file)
    {
        Block[] constants = combined.constants(file);
        for (int i = 0; i < constants.length; i++) {
            if (constants[i] == null && columnOfChannel[i] < 0) {
                constants[i] = nulls[i];
            }
        }
        return constants;
    }

    private boolean openFiles()
            throws IOException
    {
        try {
            combined = loader.hasNext() ? loader.next() : null;
        }
        catch (IOException | RuntimeException e) {
            throw ReadFailure.of(e, loader.current());
        }
        if (combined == null) {
            return false;
        }
        current = combined.file(0).path();
        ReadSchema schema = combined.schema();
        columnOfChannel = new int[scan.channels().size()];
        for (int i = 0; i < columnOfChannel.length; i++) {
            columnOfChannel[i] = schema.columnOfChannel(i);
        }
        try {
            reader = NativeReader.open(combined, memory, scan.options(), problem -> ReadFailure.of(problem, current));
        }
        catch (IOException | RuntimeException e) {
            combined.source().close();
            throw e;
        }
        return true;
    }

    private void closeReader()
            throws IOException
    {
        ParquetReader closing = reader;
        reader = null;
        combined = null;
        counters.read(closing.getMetrics());
        closing.close();
    }

    @Override
    public long getMemoryUsage()
    {
        return memory.getBytes() + joiner.bytes() + loader.bytesAhead() + (combined == null ? 0 : combined.heldBytes());
    }

    @Override
    void closeFiles()
            throws IOException
    {
        loader.close();
        if (reader != null) {
            closeReader();
        }
    }
}
