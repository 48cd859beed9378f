package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.io.IOException;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestRangeDataSource
{
    /** Trino's reader of Parquet wraps an IOException within a column as one of its own, whose code says nothing. */
    @Test
    void storageThatFailsIsNoIOException()
    {
        ReadableFile denied = new ReadableFile()
        {
            @Override
            public long size()
            {
                return 100;
            }

            @Override
            public void readFully(long position, byte[] buffer, int offset, int length)
                    throws IOException
            {
                throw new IOException("Failed to open S3 file", new IOException("the token has expired"));
            }

            @Override
            public void close() {}
        };
        RangeDataSource source = new RangeDataSource(new ParquetDataSourceId("s3://lake/f"), denied, ParquetReaderOptions.defaultOptions());
        TrinoException told = assertThrows(TrinoException.class, () -> source.readFully(10, 20));
        assertEquals(BridgeErrorCode.FILE_UNREADABLE.toErrorCode(), told.getErrorCode());
        assertTrue(told.getMessage().startsWith("s3://lake/f cannot be read: Failed to open S3 file: the token has expired"), told.getMessage());
    }
}
