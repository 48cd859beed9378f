package io.skipbridge.trino.read.footer;

import io.trino.parquet.ParquetDataSourceId;
import io.trino.parquet.metadata.ParquetMetadata;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.schema.MessageType;

import java.io.IOException;
import java.util.Optional;

/** Converts a footer's schema with Trino's reader. The call differs between families of releases. */
final class NativeSchema
{
    private NativeSchema() {}

    static MessageType read(FileMetaData metadata, ParquetDataSourceId id)
            throws IOException
    {
        return new ParquetMetadata(metadata, id, Optional.empty()).getFileMetaData().getSchema();
    }
}
