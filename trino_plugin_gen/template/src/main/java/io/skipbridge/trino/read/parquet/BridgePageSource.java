package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.ConstantColumns;
import io.skipbridge.trino.read.file.ReadFailure;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.read.page.MappedSourcePage;
import io.skipbridge.trino.read.page.RowsPageSource;
import io.skipbridge.trino.read.storage.AheadRead;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.memory.context.AggregatedMemoryContext;
import io.trino.parquet.reader.ParquetReader;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;

import static io.trino.memory.context.AggregatedMemoryContext.newSimpleAggregatedMemoryContext;

/** Reads a split's files with Trino's Parquet reader. */
public final class BridgePageSource
        extends RowsPageSource
{
    private final ScanContext scan;
    private final CombinedFilesLoader loader;
    private final AggregatedMemoryContext memory = newSimpleAggregatedMemoryContext();
    private CombinedFiles combined;
    private int[] columnOfChannel;
    private List<Optional<UnaryOperator<Block>>> conversions;
    private ParquetReader reader;
    private String current;

    public BridgePageSource(ScanContext scan, List<PlannedFile> files)
    {
        this(scan, files, Optional.empty());
    }

    /** @param first the read of what is read first of the first file, if it was started already */
    public BridgePageSource(ScanContext scan, List<PlannedFile> files, Optional<AheadRead> first)
    {
        super(scan.channels());
        this.scan = scan;
        this.loader = new CombinedFilesLoader(scan, new ConstantColumns(scan.channels()), counters, files, first);
        this.current = files.isEmpty() ? "split without files" : files.getFirst().path();
    }

    /** Reads a file whose bytes are in memory. */
    public static BridgePageSource ofBytes(ScanContext scan, PlannedFile file, byte[] bytes)
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
    protected RuntimeException failure(Throwable problem)
    {
        return ReadFailure.of(problem, current);
    }

    @Override
    protected boolean isOpen()
    {
        return reader != null;
    }

    @Override
    protected boolean wouldWait()
    {
        return loader.wouldWait();
    }

    @Override
    protected CompletableFuture<?> opening()
    {
        return loader.blocked();
    }

    @Override
    protected boolean isLarge()
    {
        return combined.isLarge();
    }

    @Override
    protected SourcePage read()
            throws IOException
    {
        if (positions() > 0) {
            combined.readOn();
        }
        SourcePage page = reader.nextPage();
        if (page == null) {
            return null;
        }
        int file = combined.fileOfRow(reader.lastBatchStartRow());
        String path = combined.file(file).path();
        current = path;
        return new MappedSourcePage(page, columnOfChannel, constants(file), conversions, problem -> ReadFailure.of(problem, path));
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

    @Override
    protected boolean open()
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
        conversions = new ArrayList<>();
        for (int i = 0; i < columnOfChannel.length; i++) {
            columnOfChannel[i] = schema.columnOfChannel(i);
            conversions.add(schema.conversion(i));
        }
        try {
            schema.requireReadable();
            reader = NativeReader.open(combined, memory, scan.options(), problem -> ReadFailure.of(problem, current));
        }
        catch (IOException | RuntimeException e) {
            combined.source().close();
            throw e;
        }
        return true;
    }

    @Override
    protected void closeOpen()
            throws IOException
    {
        if (reader == null) {
            return;
        }
        ParquetReader closing = reader;
        reader = null;
        combined = null;
        counters.read(closing.getMetrics());
        closing.close();
    }

    @Override
    public long getMemoryUsage()
    {
        return memory.getBytes() + joinedBytes() + loader.bytesAhead() + (combined == null ? 0 : combined.heldBytes());
    }

    @Override
    protected void closeFiles()
            throws IOException
    {
        loader.close();
        super.closeFiles();
    }
}
