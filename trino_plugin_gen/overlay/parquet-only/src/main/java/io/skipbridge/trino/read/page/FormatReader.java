package io.skipbridge.trino.read.page;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.read.ReadSettings;
import io.skipbridge.trino.split.FileFormat;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorPageSource;

import java.util.List;
import java.util.Locale;

/** Reads the files of one format in one scan. Trino's readers of other formats than Parquet are not published for this release. */
public interface FormatReader
{
    /** Reads files of this format, one after another. */
    ConnectorPageSource open(FileScan scan, List<PlannedFile> planned);

    static FormatReader of(FileFormat format, ReadSettings settings)
    {
        return switch (format) {
            case PARQUET -> new ParquetFormat();
            case HUDI, HUDI_BY_ID -> new HudiFormat();
            default -> (scan, planned) -> {
                throw new TrinoException(
                        BridgeErrorCode.UNSUPPORTED_FORMAT,
                        "File %s has the format %s; on this release of Trino the connector reads parquet only. Read the table with another release".formatted(
                                planned.getFirst().path(), format.name().toLowerCase(Locale.ENGLISH)));
            };
        };
    }
}
