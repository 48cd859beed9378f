package io.skipbridge.trino.read;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.read.file.FormatReader;
import io.skipbridge.trino.read.hudi.HudiFormat;
import io.skipbridge.trino.read.parquet.ParquetFormat;
import io.skipbridge.trino.split.FileFormat;
import io.trino.spi.TrinoException;

import java.util.Locale;

/** The reader of each file format. Trino's readers of other formats than Parquet are not published for this release. */
final class FormatReaders
{
    private FormatReaders() {}

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
