package io.skipbridge.trino.read.orc;

import io.airlift.slice.Slice;
import io.skipbridge.trino.read.file.PlannedBytes;
import io.trino.orc.DiskRange;
import io.trino.orc.OrcDataSource;
import io.trino.orc.OrcDataSourceId;
import io.trino.orc.OrcReaderOptions;
import io.trino.orc.metadata.StripeInformation;
import io.trino.orc.stream.OrcDataReader;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import static io.trino.orc.OrcDataSourceUtils.mergeAdjacentDiskRanges;
import static java.lang.Math.toIntExact;

/** A source over a large file of a remote store: it tells the file what Trino's reader will ask for, in the ranges in which that reader asks. */
final class AheadOrcSource
        implements OrcDataSource
{
    private final OrcDataSource source;
    private final PlannedBytes file;
    private final OrcReaderOptions options;

    AheadOrcSource(OrcDataSource source, PlannedBytes file, OrcReaderOptions options)
    {
        this.source = source;
        this.file = file;
        this.options = options;
    }

    /** These stripes will be read. Small ones are read whole, several at once; of others the footer is read first, which tells the ranges of columns. */
    void expect(List<StripeInformation> stripes)
            throws IOException
    {
        if (stripes.isEmpty()) {
            return;
        }
        if (stripes.stream().allMatch(stripe -> stripe.getTotalLength() <= options.getTinyStripeThreshold().toBytes())) {
            List<DiskRange> whole = stripes.stream().map(stripe -> new DiskRange(stripe.getOffset(), toIntExact(stripe.getTotalLength()))).toList();
            for (DiskRange range : mergeAdjacentDiskRanges(whole, options.getMaxMergeDistance(), options.getTinyStripeThreshold())) {
                file.expect(NativeRange.offset(range), NativeRange.length(range));
            }
            return;
        }
        for (StripeInformation stripe : stripes) {
            file.expect(stripe.getOffset() + stripe.getIndexLength() + stripe.getDataLength(), toIntExact(stripe.getFooterLength()));
        }
    }

    /** The ranges of a stripe. A long one is read in pieces. */
    @Override
    public <K> Map<K, OrcDataReader> readFully(Map<K, DiskRange> ranges)
            throws IOException
    {
        long first = ranges.values().stream().mapToLong(NativeRange::offset).min().orElse(0);
        file.forget(first);
        List<DiskRange> small = new ArrayList<>();
        int longest = toIntExact(options.getStreamBufferSize().toBytes());
        for (DiskRange range : ranges.values()) {
            if (NativeRange.length(range) <= options.getMaxBufferSize().toBytes()) {
                small.add(range);
                continue;
            }
            long end = NativeRange.offset(range) + NativeRange.length(range);
            for (long offset = NativeRange.offset(range); offset < end; offset += longest) {
                file.expect(offset, toIntExact(Math.min(longest, end - offset)));
            }
        }
        for (DiskRange range : mergeAdjacentDiskRanges(small, options.getMaxMergeDistance(), options.getMaxBufferSize())) {
            file.expect(NativeRange.offset(range), NativeRange.length(range));
        }
        return source.readFully(ranges);
    }

    @Override
    public OrcDataSourceId getId()
    {
        return source.getId();
    }

    @Override
    public long getReadBytes()
    {
        return source.getReadBytes();
    }

    @Override
    public long getReadTimeNanos()
    {
        return source.getReadTimeNanos();
    }

    @Override
    public long getEstimatedSize()
    {
        return source.getEstimatedSize();
    }

    @Override
    public long getRetainedSize()
    {
        return source.getRetainedSize();
    }

    @Override
    public Slice readTail(int length)
            throws IOException
    {
        return source.readTail(length);
    }

    @Override
    public Slice readFully(long position, int length)
            throws IOException
    {
        return source.readFully(position, length);
    }

    @Override
    public void close()
            throws IOException
    {
        source.close();
    }

    @Override
    public String toString()
    {
        return source.toString();
    }
}
