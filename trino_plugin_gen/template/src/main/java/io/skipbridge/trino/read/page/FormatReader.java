package io.skipbridge.trino.read.page;

import io.skipbridge.trino.read.ReadSettings;
import io.skipbridge.trino.read.avro.AvroFormat;
import io.skipbridge.trino.read.orc.OrcFormat;
import io.skipbridge.trino.read.text.LineFormat;
import io.skipbridge.trino.read.text.RcFormat;
import io.skipbridge.trino.split.FileFormat;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.connector.ConnectorPageSource;
import org.apache.avro.Schema;
import org.joda.time.DateTimeZone;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** Reads the files of one format in one scan. */
public interface FormatReader
{
    /** Reads files of this format, one after another. */
    ConnectorPageSource open(FileScan scan, List<PlannedFile> planned);

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
