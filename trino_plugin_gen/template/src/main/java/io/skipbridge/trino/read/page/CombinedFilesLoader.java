package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.footer.Footer;
import io.skipbridge.trino.read.footer.FooterBytes;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.read.storage.RangeDataSource;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.parquet.reader.RowGroupInfo;
import io.trino.spi.predicate.TupleDomain;

import java.io.IOException;
import java.util.Iterator;
import java.util.List;

/**
 * Combines a split's files. Small files are read whole and combined up to a limit; each large file is on its own.
 */
final class CombinedFilesLoader
{
    private static final long SMALL_FILE = 4 << 20;
    private static final int MAX_FILES = 64;
    private static final long MAX_BYTES = 16 << 20;

    private final ScanContext scan;
    private final ConstantColumns constants;
    private final ReadCounters counters;
    private final Iterator<PlannedFile> files;
    private final ChunkInflater inflater = new ChunkInflater();
    private LoadedFile ahead;
    private String current = "split without files";

    /** A small file in memory that did not fit the previous combined files. */
    private record LoadedFile(PlannedFile file, byte[] bytes, ReadSchema schema, Footer footer) {}

    CombinedFilesLoader(ScanContext scan, ConstantColumns constants, ReadCounters counters, List<PlannedFile> files)
    {
        this.scan = scan;
        this.constants = constants;
        this.counters = counters;
        this.files = files.iterator();
    }

    /** The path of the file in work. */
    String current()
    {
        return current;
    }

    boolean hasNext()
    {
        return ahead != null || files.hasNext();
    }

    /** The next files with row groups to read, or null if there are none. */
    CombinedFiles next()
            throws IOException
    {
        CombinedFiles combined = null;
        ConcatenatedDataSource source = null;
        while (hasNext()) {
            LoadedFile loaded = ahead;
            ahead = null;
            if (loaded == null) {
                PlannedFile file = files.next();
                current = file.path();
                if (!constants.mayMatch(file, scan.predicate().get())) {
                    counters.skipped++;
                    continue;
                }
                if (file.size() > SMALL_FILE) {
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
        byte[] bytes = new byte[(int) file.size()];
        try (ReadableFile opened = scan.files().open(scan.session(), file)) {
            opened.readFully(0, bytes, 0, bytes.length);
        }
        ParquetDataSourceId id = new ParquetDataSourceId(file.path());
        FooterBytes footerBytes = FooterBytes.whole(bytes, id);
        ReadSchema schema = scan.schemas().get(footerBytes, scan.predicate().get(), id);
        counters.opened(bytes.length);
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
        ReadableFile opened = scan.files().open(scan.session(), file);
        boolean kept = false;
        try {
            FooterBytes footerBytes = FooterBytes.read(opened, id);
            TupleDomain<BridgeColumnHandle> predicate = scan.predicate().get();
            ReadSchema schema = scan.schemas().get(footerBytes, predicate, id);
            Footer footer = Footer.read(footerBytes, schema, id);
            counters.opened(footerBytes.bytes().length);
            CombinedFiles combined = new CombinedFiles(schema, footer.createdBy(), new RangeDataSource(id, opened, scan.options()));
            List<RowGroupInfo> selected = RowGroupSelection.select(file, footer, schema, combined.source(), scan.options(), 0, 0);
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
}
