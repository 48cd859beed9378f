package io.skipbridge.trino.read;

import io.trino.parquet.AbstractParquetDataSource;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.parquet.ParquetReaderOptions;

import java.io.IOException;

/** A large file, of which only the ranges in use are read. */
final class RangeSource
        extends AbstractParquetDataSource
{
    private final ReadableFile file;

    RangeSource(ParquetDataSourceId id, ReadableFile file, ParquetReaderOptions options)
    {
        super(id, file.size(), options);
        this.file = file;
    }

    @Override
    protected void readInternal(long position, byte[] buffer, int offset, int length)
            throws IOException
    {
        file.readFully(position, buffer, offset, length);
    }

    @Override
    public void close()
            throws IOException
    {
        file.close();
    }
}
