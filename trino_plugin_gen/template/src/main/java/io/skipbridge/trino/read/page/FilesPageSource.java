package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.io.IOException;
import java.util.List;

/**
 * Reads a split's files one by one with the reader of their format. Adds the constants of each file, and NULL for columns that it does not have. Joins
 * small pages; passes large ones on with their columns unread. Skips files whose constants contradict the predicate.
 */
public final class FilesPageSource
        extends SplitPageSource
{
    /** The smallest page that is passed on with its columns unread. */
    private static final int LAZY_POSITIONS = 4_096;

    private final FileScan scan;
    private final RowFormat format;
    private final ConstantColumns constants;
    private final FilesAhead files;
    private final PageJoiner joiner;
    private final Block[] nulls;
    private PlannedFile file;
    private PlannedBytes bytes;
    private FileReader reader;
    private int[] columnOfChannel;
    private Block[] values;

    public FilesPageSource(FileScan scan, RowFormat format, List<PlannedFile> files)
    {
        this.scan = scan;
        this.format = format;
        this.constants = new ConstantColumns(scan.channels());
        this.files = new FilesAhead(scan, constants, counters, files, format.ahead());
        this.joiner = new PageJoiner(scan.channels().stream().map(BridgeColumnHandle::type).toList());
        this.nulls = scan.channels().stream().map(channel -> channel.type().createNullBlock()).toArray(Block[]::new);
    }

    @Override
    SourcePage nextPage()
            throws IOException
    {
        while (true) {
            if (reader == null && !joiner.isEmpty() && files.wouldWait()) {
                // the engine may need no more rows than these
                return SourcePage.create(joiner.join());
            }
            if (reader == null && !openFile()) {
                end();
                return joiner.isEmpty() ? null : SourcePage.create(joiner.join());
            }
            SourcePage page = reader.next();
            if (page == null) {
                closeFile();
                continue;
            }
            SourcePage mapped = new MappedSourcePage(page, columnOfChannel, values, _ -> false);
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

    private boolean openFile()
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
        bytes = new PlannedBytes(
                opened.size(),
                files.read(opened),
                format.ahead().offset(opened),
                () -> counters.counted(scan.files().open(scan.session(), opened)));
        reader = format.open(scan, new OpenFile(opened, bytes, counters, problem -> failure(problem, opened)), scan.predicate().get());
        values = constants.blocks(opened);
        columnOfChannel = new int[values.length];
        int data = 0;
        for (int i = 0; i < values.length; i++) {
            columnOfChannel[i] = values[i] == null ? reader.channelOf(data++) : -1;
            if (values[i] == null && columnOfChannel[i] < 0) {
                values[i] = nulls[i];
            }
        }
        return true;
    }

    private void closeFile()
            throws IOException
    {
        try (PlannedBytes _ = bytes; FileReader _ = reader) {
            bytes = null;
            reader = null;
        }
    }

    @Override
    RuntimeException failure(Throwable problem)
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
        return joiner.bytes() + files.bytes() + (reader == null ? 0 : reader.memoryBytes() + bytes.heldBytes());
    }

    @Override
    void closeFiles()
            throws IOException
    {
        files.close();
        closeFile();
    }
}
