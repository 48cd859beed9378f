package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.ConstantColumns;
import io.skipbridge.trino.read.file.FilesAhead;
import io.skipbridge.trino.read.file.ReadFailure;
import io.skipbridge.trino.read.footer.Footer;
import io.skipbridge.trino.read.footer.FooterBytes;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.read.page.PageJoiner;
import io.skipbridge.trino.read.page.SplitPageSource;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.connector.SourcePage;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Reads a scan without data columns. Counts rows from footers, and repeats each file's constants for its rows. */
final class CountPageSource
        extends SplitPageSource
{
    private static final int MAX_POSITIONS = 1 << 20;
    private static final int FILES_PER_PAGE = 256;

    private final ScanContext scan;
    private final ConstantColumns constants;
    private final FilesAhead files;
    private final PageJoiner joiner;
    private PlannedFile file;
    private long rowsLeft;

    CountPageSource(ScanContext scan, List<PlannedFile> files)
    {
        this.scan = scan;
        this.constants = new ConstantColumns(scan.channels());
        this.files = new FilesAhead(scan.scan(), constants, counters, files, AheadRange.end(0, FooterBytes.TAIL));
        this.joiner = new PageJoiner(scan.channels().stream().map(BridgeColumnHandle::type).toList());
    }

    @Override
    protected SourcePage nextPage()
            throws IOException
    {
        SourcePage page = scan.channels().isEmpty() ? nextCount() : nextConstants();
        if (rowsLeft == 0 && !files.hasNext()) {
            end();
        }
        return page;
    }

    @Override
    protected RuntimeException failure(Throwable problem)
    {
        return ReadFailure.of(problem, file == null ? "split" : file.path());
    }

    @Override
    public CompletableFuture<?> isBlocked()
    {
        return isFinished() || rowsLeft > 0 || !joiner.isEmpty() ? NOT_BLOCKED : files.blocked();
    }

    /** Rows of many files in one page without columns. */
    private SourcePage nextCount()
            throws IOException
    {
        long rows = 0;
        for (int i = 0; i < FILES_PER_PAGE && rows < MAX_POSITIONS && (rowsLeft > 0 || (!(rows > 0 && files.wouldWait()) && nextFile())); i++) {
            long taken = Math.min(rowsLeft, MAX_POSITIONS - rows);
            rowsLeft -= taken;
            rows += taken;
        }
        return rows == 0 ? null : SourcePage.create((int) rows);
    }

    private SourcePage nextConstants()
            throws IOException
    {
        while (!joiner.isFull() && (rowsLeft > 0 || (!(!joiner.isEmpty() && files.wouldWait()) && nextFile()))) {
            if (rowsLeft == 0) {
                continue;
            }
            int taken = (int) Math.min(rowsLeft, PageJoiner.TARGET_POSITIONS);
            rowsLeft -= taken;
            Block[] blocks = constants.blocks(file);
            for (int i = 0; i < blocks.length; i++) {
                blocks[i] = RunLengthEncodedBlock.create(blocks[i], taken);
            }
            joiner.add(blocks, taken);
        }
        if (joiner.isEmpty()) {
            return null;
        }
        Page page = joiner.join();
        return SourcePage.create(page);
    }

    private boolean nextFile()
            throws IOException
    {
        while (files.hasNext()) {
            PlannedFile next = files.next();
            if (next == null) {
                continue;
            }
            file = next;
            ParquetDataSourceId id = new ParquetDataSourceId(file.path());
            FooterBytes footerBytes = files.footer(file, id);
            ReadSchema schema = scan.schemas().get(footerBytes, file.reader(), scan.predicate().get(), id);
            Footer footer = Footer.read(footerBytes, schema, id);
            counters.rowGroups(footer, List.of());
            rowsLeft = RowGroupSelection.rows(file, footer);
            return true;
        }
        return false;
    }

    @Override
    public long getMemoryUsage()
    {
        return joiner.bytes() + files.bytes();
    }

    @Override
    protected void closeFiles()
    {
        files.close();
    }
}
