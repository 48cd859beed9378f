package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.ConstantColumns;
import io.skipbridge.trino.read.file.FilesAhead;
import io.skipbridge.trino.read.file.ReadCounters;
import io.skipbridge.trino.read.footer.Footer;
import io.skipbridge.trino.read.footer.FooterBytes;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.read.storage.AheadRead;
import io.skipbridge.trino.read.storage.RangeDataSource;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.parquet.reader.RowGroupInfo;
import io.trino.spi.predicate.TupleDomain;

import java.io.Closeable;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

import static io.skipbridge.trino.read.file.AheadRange.SMALL_FILE;
import static io.trino.spi.connector.ConnectorPageSource.NOT_BLOCKED;

/**
 * Combines a split's files. Small files are read whole and combined up to a limit; each large file is on its own. Combined files end early where the
 * next file's bytes are still on their way.
 */
public final class CombinedFilesLoader
        implements Closeable
{
    /** What is read of a file at first. */
    public static final AheadRange RANGE = AheadRange.end(SMALL_FILE, FooterBytes.TAIL);

    private static final int MAX_FILES = 64;
    private static final long MAX_BYTES = 16 << 20;

    private final ScanContext scan;
    private final ConstantColumns constants;
    private final ReadCounters counters;
    private final FilesAhead files;
    private final ChunkInflater inflater = new ChunkInflater();
    private LoadedFile ahead;
    private PlannedFile largeAhead;
    private String current = "split without files";

    /** A small file in memory that did not fit the previous combined files. */
    private record LoadedFile(PlannedFile file, byte[] bytes, ReadSchema schema, Footer footer) {}

    /** @param first the read of the first file's {@link #RANGE}, if it was started already */
    CombinedFilesLoader(ScanContext scan, ConstantColumns constants, ReadCounters counters, List<PlannedFile> files, Optional<AheadRead> first)
    {
        this.scan = scan;
        this.constants = constants;
        this.counters = counters;
        this.files = new FilesAhead(scan.scan(), constants, counters, files, RANGE, first);
    }

    /** The path of the file in work. */
    String current()
    {
        return current;
    }

    boolean hasNext()
    {
        return ahead != null || largeAhead != null || files.hasNext();
    }

    /** Whether {@link #next} waits for bytes that are on their way. */
    boolean wouldWait()
    {
        return ahead == null && largeAhead == null && files.wouldWait();
    }

    /** Completes when {@link #next} need not wait for its first file. */
    CompletableFuture<?> blocked()
    {
        return ahead == null && largeAhead == null ? files.blocked() : NOT_BLOCKED;
    }

    /** Bytes that were read ahead. */
    long bytesAhead()
    {
        return files.bytes() + (ahead == null ? 0 : ahead.bytes().length);
    }

    /** The next files with row groups to read, or null if there are none. */
    CombinedFiles next()
            throws IOException
    {
        CombinedFiles combined = null;
        ConcatenatedDataSource source = null;
        while (hasNext()) {
            if (combined != null && !combined.rowGroups().isEmpty() && wouldWait()) {
                return combined;
            }
            LoadedFile loaded = ahead;
            ahead = null;
            if (loaded == null) {
                PlannedFile file = largeAhead == null ? files.next() : largeAhead;
                largeAhead = null;
                if (file == null) {
                    continue;
                }
                current = file.path();
                if (file.size() > SMALL_FILE) {
                    if (combined != null && !combined.rowGroups().isEmpty()) {
                        largeAhead = file;
                        return combined;
                    }
                    combined = null;
                    CombinedFiles large = large(file);
                    if (large != null) {
                        return large;
                    }
                    continue;
                }
                loaded = load(file);
            }
            if (combined == null) {
                source = new ConcatenatedDataSource(new ParquetDataSourceId(loaded.file().path()), inflater);
                combined = new CombinedFiles(loaded.schema(), loaded.footer().createdBy(), source);
            }
            else if (!combined.accepts(loaded.schema(), loaded.footer())) {
                ahead = loaded;
                if (!combined.rowGroups().isEmpty()) {
                    return combined;
                }
                combined = null;
                continue;
            }
            add(combined, source, loaded);
            if (combined.size() >= MAX_FILES || combined.bytes() >= MAX_BYTES) {
                if (!combined.rowGroups().isEmpty()) {
                    return combined;
                }
                combined = null;
            }
        }
        return combined == null || combined.rowGroups().isEmpty() ? null : combined;
    }

    private LoadedFile load(PlannedFile file)
            throws IOException
    {
        return decode(file, files.read(file));
    }

    /** Adds a file whose bytes are in memory already, of any size. */
    void add(PlannedFile file, byte[] bytes)
            throws IOException
    {
        ahead = decode(file, bytes);
    }

    private LoadedFile decode(PlannedFile file, byte[] bytes)
            throws IOException
    {
        ParquetDataSourceId id = new ParquetDataSourceId(file.path());
        FooterBytes footerBytes = FooterBytes.in(bytes, bytes.length, id);
        ReadSchema schema = scan.schemas().get(footerBytes, file.reader(), scan.predicate().get(), id);
        return new LoadedFile(file, bytes, schema, Footer.read(footerBytes, schema, id));
    }

    private void add(CombinedFiles combined, ConcatenatedDataSource source, LoadedFile loaded)
            throws IOException
    {
        long base = source.add(loaded.bytes());
        List<RowGroupInfo> selected = RowGroupSelection.select(
                loaded.file(), loaded.footer(), loaded.schema(), source, scan.options(), base, combined.rows());
        counters.rowGroups(loaded.footer(), selected);
        combined.add(loaded.file(), constants.blocks(loaded.file()), loaded.footer(), selected);
    }

    private CombinedFiles large(PlannedFile file)
            throws IOException
    {
        ParquetDataSourceId id = new ParquetDataSourceId(file.path());
        FooterBytes footerBytes = files.footer(file, id);
        ReadableFile opened = counters.counted(scan.files().open(scan.session(), file));
        boolean kept = false;
        try {
            TupleDomain<BridgeColumnHandle> predicate = scan.predicate().get();
            ReadSchema schema = scan.schemas().get(footerBytes, file.reader(), predicate, id);
            Footer footer = Footer.read(footerBytes, schema, id);
            RangeDataSource source = scan.files().remote(file)
                    ? new AheadDataSource(id, opened, scan, file, counters, files.window())
                    : new RangeDataSource(id, opened, scan.options());
            CombinedFiles combined = new CombinedFiles(schema, footer.createdBy(), source);
            List<RowGroupInfo> selected = RowGroupSelection.select(file, footer, schema, source, scan.options(), 0, 0);
            if (source instanceof AheadDataSource ahead) {
                ahead.expect(footer, schema);
            }
            counters.rowGroups(footer, selected);
            combined.add(file, constants.blocks(file), footer, selected);
            kept = !selected.isEmpty();
            return kept ? combined : null;
        }
        finally {
            if (!kept) {
                opened.close();
            }
        }
    }
    @Override
    public void close()
    {
        files.close();
        ahead = null;
        largeAhead = null;
    }
}
