package io.skipbridge.trino.read.hudi;

import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.FormatReader;
import io.skipbridge.trino.read.merge.MergerLoader;
import io.skipbridge.trino.read.page.ChainedPageSource;
import io.skipbridge.trino.read.parquet.ParquetFormat;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.connector.ConnectorPageSource;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * File slices of Hudi whose logs are merged, or whose base files have other columns than the table. Where there are logs, no predicate reaches the
 * files, since a log may change any row.
 */
public final class HudiFormat
        implements FormatReader
{
    private final ParquetFormat parquet = new ParquetFormat();

    @Override
    public ConnectorPageSource open(FileScan scan, List<PlannedFile> planned)
    {
        List<ConnectorPageSource> sources = new ArrayList<>();
        List<PlannedFile> merged = new ArrayList<>();
        Map<ReaderSpec, List<PlannedFile>> alone = new LinkedHashMap<>();
        for (PlannedFile slice : planned) {
            (slice.logs().isEmpty() ? alone.computeIfAbsent(slice.reader(), _ -> new ArrayList<>()) : merged).add(slice);
        }
        alone.values().forEach(files -> sources.add(ByIdPageSource.of(scan, files, parquet::open)));
        if (!merged.isEmpty()) {
            Map<ReaderSpec, Optional<LogVersions>> versions = new HashMap<>();
            sources.add(new MergePageSource(
                    scan,
                    merged,
                    (slice, first, counters) -> new PlannedSliceFiles(slice, first, versions.computeIfAbsent(slice.reader(), LogVersions::of), scan, parquet::context, counters),
                    MergerLoader::hudi));
        }
        return sources.size() == 1 ? sources.getFirst() : new ChainedPageSource(sources);
    }
}
