package io.skipbridge.trino.read.storage;

import io.trino.parquet.AbstractParquetDataSource;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.parquet.ParquetReaderOptions;

import java.io.IOException;

/**
 * A data source over a large file, of which only the needed ranges are read. Storage that does not give the bytes is FILE_UNREADABLE, and no IOException:
 * Trino's reader wraps one as if the file were damaged.
 */
public class RangeDataSource
        extends AbstractParquetDataSource
{
    private final ReadableFile file;

    public RangeDataSource(ParquetDataSourceId id, ReadableFile file, ParquetReaderOptions options)
    {
        super(id, file.size(), options);
        this.file = file;
    }

    @Override
    protected void readInternal(long position, byte[] buffer, int offset, int length)
    {
        try {
            file.readFully(position, buffer, offset, length);
        }
        catch (IOException e) {
            throw ReadableFile.unreadable(getId().toString(), e);
        }
    }

    @Override
    public void close()
            throws IOException
    {
        file.close();
    }
}
