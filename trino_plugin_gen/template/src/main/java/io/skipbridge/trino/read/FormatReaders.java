package io.skipbridge.trino.read;

import io.skipbridge.trino.read.avro.AvroFormat;
import io.skipbridge.trino.read.file.FormatReader;
import io.skipbridge.trino.read.hudi.HudiFormat;
import io.skipbridge.trino.read.orc.OrcFormat;
import io.skipbridge.trino.read.page.FilesPageSource;
import io.skipbridge.trino.read.parquet.ParquetFormat;
import io.skipbridge.trino.read.text.LineFormat;
import io.skipbridge.trino.read.text.RcFormat;
import io.skipbridge.trino.split.FileFormat;
import org.apache.avro.Schema;
import org.joda.time.DateTimeZone;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** The reader of each file format. */
final class FormatReaders
{
    private FormatReaders() {}

    static FormatReader of(FileFormat format, ReadSettings settings)
    {
        return switch (format) {
            case PARQUET -> new ParquetFormat();
            case ORC -> (scan, planned) -> new FilesPageSource(scan, new OrcFormat(settings), planned);
            case AVRO -> {
                ConcurrentMap<Map<String, String>, Schema> schemas = new ConcurrentHashMap<>();
                yield (scan, planned) -> new FilesPageSource(scan, new AvroFormat(schemas), planned);
            }
            case HUDI, HUDI_BY_ID -> new HudiFormat();
            case CSV -> lines("CSV", false, settings);
            case JSON -> lines("JSON", true, settings);
            case TEXT -> lines("text", false, settings);
            case REGEX -> lines("text by a regular expression", false, settings);
            case SEQUENCEFILE -> lines("SequenceFile", false, settings);
            case RCFILE -> (scan, planned) -> new FilesPageSource(scan, new RcFormat(DateTimeZone.getDefault(), settings.types()), planned);
        };
    }

    private static FormatReader lines(String spelled, boolean byName, ReadSettings settings)
    {
        return (scan, planned) -> new FilesPageSource(scan, new LineFormat(spelled, byName, settings.types()), planned);
    }
}
