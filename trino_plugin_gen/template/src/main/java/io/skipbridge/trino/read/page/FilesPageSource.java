package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.AheadFile;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.ConstantColumns;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.FilesAhead;
import io.skipbridge.trino.read.file.OpenFile;
import io.skipbridge.trino.read.file.PlannedBytes;
import io.skipbridge.trino.read.file.ReadFailure;
import io.skipbridge.trino.read.file.RowFormat;
import io.skipbridge.trino.read.storage.PlannedInputFile;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;

/**
 * Reads a split's files one by one with the reader of their format. Adds the constants of each file, and NULL for columns that it does not have. Skips
 * files whose constants contradict the predicate.
 */
public final class FilesPageSource
        extends RowsPageSource
{
    private final FileScan scan;
    private final RowFormat format;
    private final ConstantColumns constants;
    private final FilesAhead files;
    private PlannedFile file;
    private PlannedBytes bytes;
    private FileReader reader;
    private int[] columnOfChannel;
    private Block[] values;
    private List<Optional<UnaryOperator<Block>>> conversions;

    public FilesPageSource(FileScan scan, RowFormat format, List<PlannedFile> files)
    {
        super(scan.channels());
        this.scan = scan;
        this.format = format;
        this.constants = new ConstantColumns(scan.channels());
        this.files = new FilesAhead(scan, constants, counters, files, format.ahead());
    }

    @Override
    protected boolean isOpen()
    {
        return reader != null;
    }

    @Override
    protected boolean wouldWait()
    {
        return files.wouldWait();
    }

    @Override
    protected CompletableFuture<?> opening()
    {
        return files.blocked();
    }

    @Override
    protected boolean isLarge()
    {
        return file.size() > AheadRange.SMALL_FILE;
    }

    @Override
    protected SourcePage read()
            throws IOException
    {
        if (positions() > 0) {
            readOn();
        }
        SourcePage page = reader.next();
        PlannedFile of = file;
        return page == null ? null : new MappedSourcePage(page, columnOfChannel, values, conversions, problem -> failure(problem, of));
    }

    private void readOn()
    {
        try {
            bytes.readOn();
        }
        catch (IOException e) {
            throw ReadableFile.unreadable(file.path(), e);
        }
    }

    @Override
    protected boolean open()
            throws IOException
    {
        PlannedFile next = null;
        while (next == null) {
            if (!files.hasNext()) {
                return false;
            }
            next = files.next();
        }
        PlannedFile opened = next;
        file = opened;
        boolean remote = scan.files().remote(opened);
        // an IOException of the format's reader may tell of the bytes, but these are of the storage
        try {
            bytes = new PlannedBytes(
                    opened.size(),
                    files.read(opened),
                    format.ahead().offset(opened),
                    remote,
                    () -> remote ? ahead(opened) : direct(opened));
            if (remote && format.ahead().goesOn()) {
                bytes.expectOn(opened.start() + opened.length(), PlannedInputFile.BUFFER);
            }
        }
        catch (IOException e) {
            throw ReadableFile.unreadable(opened.path(), e);
        }
        reader = format.open(scan, new OpenFile(opened, bytes, counters, problem -> failure(problem, opened)), scan.predicate().get());
        values = constants.blocks(opened);
        columnOfChannel = new int[values.length];
        conversions = new ArrayList<>(Collections.nCopies(values.length, Optional.empty()));
        int data = 0;
        for (int i = 0; i < values.length; i++) {
            columnOfChannel[i] = -1;
            if (values[i] == null) {
                columnOfChannel[i] = reader.channelOf(data);
                conversions.set(i, reader.conversionOf(data++));
                if (columnOfChannel[i] < 0) {
                    values[i] = nulls[i];
                }
            }
        }
        return true;
    }

    private ReadableFile direct(PlannedFile opened)
            throws IOException
    {
        return counters.counted(scan.files().open(scan.session(), opened));
    }

    private AheadFile ahead(PlannedFile opened)
            throws IOException
    {
        return new AheadFile(
                direct(opened),
                (offset, length) -> files.readRange(opened, offset, length),
                scan.files().budget(),
                counters,
                files.window());
    }

    @Override
    protected void closeOpen()
            throws IOException
    {
        try (PlannedBytes _ = bytes; FileReader _ = reader) {
            bytes = null;
            reader = null;
        }
    }

    @Override
    protected RuntimeException failure(Throwable problem)
    {
        return failure(problem, file);
    }

    private RuntimeException failure(Throwable problem, PlannedFile of)
    {
        return ReadFailure.of(problem, of == null ? "split" : of.path(), format.spelled(), format::damaged);
    }

    @Override
    public long getMemoryUsage()
    {
        return joinedBytes() + files.bytes() + (reader == null ? 0 : reader.memoryBytes() + bytes.heldBytes());
    }

    @Override
    protected void closeFiles()
            throws IOException
    {
        files.close();
        super.closeFiles();
    }
}
