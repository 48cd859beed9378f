package io.skipbridge.trino.read.file;

import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.connector.ConnectorPageSource;

import java.util.List;

/** Reads the files of one format in one scan. */
public interface FormatReader
{
    /** Reads files of this format, one after another. */
    ConnectorPageSource open(FileScan scan, List<PlannedFile> planned);
}
