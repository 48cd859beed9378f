package io.skipbridge.trino.read.page;

import io.skipbridge.trino.read.footer.Footer;
import io.trino.parquet.reader.ParquetReader;
import io.trino.parquet.reader.RowGroupInfo;
import io.trino.plugin.base.metrics.LongCount;
import io.trino.spi.metrics.Metrics;

import java.util.List;
import java.util.Map;

/** Counters of a page source, which EXPLAIN ANALYZE VERBOSE shows per operator. */
final class ReadCounters
{
    long opened;
    long skipped;
    long bytes;
    long rowGroups;
    long rowGroupsRead;
    long rowsSkipped;

    void opened(long bytesRead)
    {
        opened++;
        bytes += bytesRead;
    }

    void rowGroups(Footer footer, List<RowGroupInfo> selected)
    {
        rowGroups += footer.rowGroups().size();
        rowGroupsRead += selected.size();
    }

    /** Adds the counters of a reader that has read its row groups. */
    void read(Metrics reader)
    {
        if (reader.getMetrics().get(ParquetReader.COLUMN_INDEX_ROWS_FILTERED) instanceof LongCount filtered) {
            rowsSkipped += filtered.getTotal();
        }
    }

    Metrics metrics()
    {
        return new Metrics(Map.of(
                "skipbridge files opened", new LongCount(opened),
                "skipbridge files skipped by join filter", new LongCount(skipped),
                "skipbridge row groups in footers", new LongCount(rowGroups),
                "skipbridge row groups read", new LongCount(rowGroupsRead),
                "skipbridge rows skipped by page index", new LongCount(rowsSkipped)));
    }
}
