package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.merge.MergerLoader;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;

import java.util.List;
import java.util.function.Supplier;

/** File slices of Hudi with logs. No predicate reaches their files, since a log may change any row. */
final class HudiFormat
        implements FormatReader
{
    private final FileOpener files;
    private final ParquetFormat parquet;

    HudiFormat(FileOpener files)
    {
        this.files = files;
        this.parquet = new ParquetFormat(files);
    }

    @Override
    public ConnectorPageSource open(
            ConnectorSession session,
            DateTimeZone timeZone,
            List<BridgeColumnHandle> channels,
            Supplier<TupleDomain<BridgeColumnHandle>> predicate,
            List<PlannedFile> planned)
    {
        return new MergePageSource(
                channels,
                predicate,
                planned,
                (slice, counters) -> new PlannedSliceFiles(slice, files, session, columns -> parquet.unfiltered(session, timeZone, columns), counters),
                MergerLoader::hudi);
    }
}
