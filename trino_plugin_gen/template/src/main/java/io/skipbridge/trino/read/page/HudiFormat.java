package io.skipbridge.trino.read.page;

import io.skipbridge.trino.read.merge.MergerLoader;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.connector.ConnectorPageSource;

import java.util.List;

/** File slices of Hudi with logs. No predicate reaches their files, since a log may change any row. */
final class HudiFormat
        implements FormatReader
{
    private final ParquetFormat parquet = new ParquetFormat();

    @Override
    public ConnectorPageSource open(FileScan scan, List<PlannedFile> planned)
    {
        return new MergePageSource(
                scan.channels(),
                scan.predicate(),
                planned,
                (slice, counters) -> new PlannedSliceFiles(slice, scan.files(), scan.session(), columns -> parquet.context(scan.unfiltered(columns)), counters),
                MergerLoader::hudi);
    }
}
