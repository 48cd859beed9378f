package io.skipbridge.trino.split;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonProperty;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.SplitWeight;
import io.trino.spi.predicate.TupleDomain;

import java.util.List;

import static java.util.Objects.requireNonNull;

/**
 * A split of several files. On the coordinator it is a view into the planner's batch, which is packed when it is sent. On a worker it is the
 * packed bytes, which are unpacked when the split is read.
 */
public final class BridgeSplit
        extends PlacedSplit
{
    private static final int SHALLOW_BYTES = 64;
    private static final int FILE_BYTES = 48;
    /** Parts of a large file that are kept in one place. */
    private static final int PART_BITS = 28;

    private final SplitColumns columns;
    private final int ordinal;
    private final byte[] packed;
    private final TupleDomain<BridgeColumnHandle> rowFilter;
    private final int weightThousandths;

    BridgeSplit(SplitColumns columns, int ordinal, SplitPlacement placement)
    {
        super(placement, () -> key(columns, columns.firstFile(ordinal)));
        this.columns = columns;
        this.ordinal = ordinal;
        this.packed = null;
        this.rowFilter = columns.rowFilter();
        this.weightThousandths = columns.weightThousandths(ordinal);
    }

    /** A split without files, for a table handle that holds the rows itself. */
    static BridgeSplit empty()
    {
        return new BridgeSplit(PackedFiles.none(), TupleDomain.all(), 1000);
    }

    @JsonCreator
    public BridgeSplit(@JsonProperty("files") byte[] packed, @JsonProperty("rowFilter") TupleDomain<BridgeColumnHandle> rowFilter, @JsonProperty("weight") int weightThousandths)
    {
        super(SplitPlacement.ANYWHERE, () -> "");
        this.columns = null;
        this.ordinal = 0;
        this.packed = packed;
        this.rowFilter = requireNonNull(rowFilter, "rowFilter is null");
        this.weightThousandths = weightThousandths;
    }

    /** Equal for splits that begin in the same part of a file. A slice of logs alone has no path, but that of its first log. */
    private static String key(SplitColumns columns, int file)
    {
        if (file == columns.files()) {
            return "";
        }
        String path = columns.pathText(file);
        List<LogFile> logs = path.isEmpty() ? columns.logs(file) : List.of();
        return (logs.isEmpty() ? path : logs.getFirst().path()) + ":" + (columns.start(file) >> PART_BITS);
    }

    @JsonProperty("files")
    public byte[] packed()
    {
        return columns == null ? packed : PackedFiles.pack(columns, columns.firstFile(ordinal), columns.firstFile(ordinal + 1));
    }

    /** What every row of the snapshot satisfies; the reader removes all others. */
    @JsonProperty("rowFilter")
    public TupleDomain<BridgeColumnHandle> rowFilter()
    {
        return rowFilter;
    }

    @JsonProperty("weight")
    public int weightThousandths()
    {
        return weightThousandths;
    }

    public List<PlannedFile> files()
    {
        return PackedFiles.unpack(packed());
    }

    @Override
    public SplitWeight getSplitWeight()
    {
        return SplitWeight.fromProportion(Math.clamp(weightThousandths, 1, 1000) / 1000.0);
    }

    @Override
    public long getRetainedSizeInBytes()
    {
        if (columns == null) {
            return SHALLOW_BYTES + packed.length;
        }
        int first = columns.firstFile(ordinal);
        int end = columns.firstFile(ordinal + 1);
        return SHALLOW_BYTES + (long) FILE_BYTES * (end - first) + columns.pathBytes(first, end);
    }
}
