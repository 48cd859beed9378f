package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.split.FileFormat;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;

import java.util.List;
import java.util.function.Supplier;

/** Reads the files of one format in one scan. */
interface FormatReader
{
    /**
     * Reads files of this format, one after another.
     *
     * @param timeZone of timestamps that are kept in UTC
     * @param predicate what may be used to skip rows; it grows with the dynamic filter
     */
    ConnectorPageSource open(
            ConnectorSession session,
            DateTimeZone timeZone,
            List<BridgeColumnHandle> channels,
            Supplier<TupleDomain<BridgeColumnHandle>> predicate,
            List<PlannedFile> planned);

    static FormatReader of(FileFormat format, FileOpener files)
    {
        return switch (format) {
            case PARQUET -> new ParquetFormat(files);
            case HUDI -> new HudiFormat(files);
        };
    }
}
