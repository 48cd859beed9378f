package io.skipbridge.trino.read.file;

import io.skipbridge.trino.read.footer.Footer;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.trino.parquet.reader.ParquetReader;
import io.trino.parquet.reader.RowGroupInfo;
import io.trino.plugin.base.metrics.LongCount;
import io.trino.spi.metrics.Metric;
import io.trino.spi.metrics.Metrics;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Counters of a page source: what it read of its files, and what EXPLAIN ANALYZE VERBOSE shows per operator. */
public final class ReadCounters
{
    private long opened;
    private long skipped;
    private long bytes;
    private long nanos;
    private long rowGroups;
    private long rowGroupsRead;
    private long rowsSkipped;
    private long stripes;
    private long stripesRead;

    /** The file, with each of its reads counted. */
    public ReadableFile counted(ReadableFile file)
    {
        return new CountedFile(file);
    }

    /** Counts files that are opened. */
    public void openFiles(int count)
    {
        opened += count;
    }

    /** Counts a file that is skipped, since a join's filter excludes its constants. */
    public void skipFile()
    {
        skipped++;
    }

    public long bytes()
    {
        return bytes;
    }

    public long nanos()
    {
        return nanos;
    }

    /** Counts bytes that were read for the page source, and how long it waited for them. */
    public void read(long length, long waitedNanos)
    {
        bytes += length;
        nanos += waitedNanos;
    }

    public void rowGroups(Footer footer, List<RowGroupInfo> selected)
    {
        rowGroups += footer.rowGroups().size();
        rowGroupsRead += selected.size();
    }

    /** Counts the stripes of a file of ORC, and those that its reader reads. */
    public void stripes(long all, long read)
    {
        stripes += all;
        stripesRead += read;
    }

    /** Adds the counters of a reader that has read its row groups. */
    public void read(Metrics reader)
    {
        if (reader.getMetrics().get(ParquetReader.COLUMN_INDEX_ROWS_FILTERED) instanceof LongCount filtered) {
            rowsSkipped += filtered.getTotal();
        }
    }

    public Metrics metrics()
    {
        Map<String, Metric<?>> metrics = new HashMap<>(Map.of(
                "skipbridge files opened", new LongCount(opened),
                "skipbridge files skipped by join filter", new LongCount(skipped),
                "skipbridge row groups in footers", new LongCount(rowGroups),
                "skipbridge row groups read", new LongCount(rowGroupsRead),
                "skipbridge rows skipped by page index", new LongCount(rowsSkipped)));
        if (stripes > 0) {
            metrics.put("skipbridge stripes in footers", new LongCount(stripes));
            metrics.put("skipbridge stripes read", new LongCount(stripesRead));
        }
        return new Metrics(metrics);
    }

    private final class CountedFile
            implements ReadableFile
    {
        private final ReadableFile file;

        CountedFile(ReadableFile file)
        {
            this.file = file;
        }

        @Override
        public long size()
        {
            return file.size();
        }

        @Override
        public void readFully(long position, byte[] buffer, int offset, int length)
                throws IOException
        {
            long start = System.nanoTime();
            try {
                file.readFully(position, buffer, offset, length);
                bytes += length;
            }
            finally {
                nanos += System.nanoTime() - start;
            }
        }

        @Override
        public void close()
                throws IOException
        {
            file.close();
        }
    }
}
