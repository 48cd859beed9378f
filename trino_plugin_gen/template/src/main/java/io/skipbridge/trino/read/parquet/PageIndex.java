package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.read.footer.ChunkFooter;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.read.footer.RowGroupFooter;
import io.skipbridge.trino.read.footer.WriterDoubts;
import io.trino.parquet.ParquetDataSource;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.parquet.metadata.BlockMetadata;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.internal.column.columnindex.ColumnIndex;
import org.apache.parquet.internal.column.columnindex.OffsetIndex;
import org.apache.parquet.internal.filter2.columnindex.ColumnIndexStore;

import java.util.Arrays;
import java.util.Optional;

/**
 * The page index of a row group whose file starts at {@code base} of its source. Offset indexes hold positions in the file, which it moves. Of
 * column indexes it shows what is believed of the file's writer.
 */
record PageIndex(ColumnIndexStore file, WriterDoubts doubts, ReadSchema schema, long base)
        implements ColumnIndexStore
{
    /**
     * The page index, if it may be used: each chunk to read must have an offset index. In memory it is not used if all chunks are small, since
     * decoding them whole takes less time.
     */
    static Optional<ColumnIndexStore> of(
            RowGroupFooter group,
            WriterDoubts doubts,
            ParquetDataSource source,
            BlockMetadata block,
            ReadSchema schema,
            ParquetReaderOptions options,
            long base)
    {
        if (!Arrays.stream(group.chunks()).allMatch(ChunkFooter::hasOffsetIndex)
                || (source instanceof ConcatenatedDataSource && Arrays.stream(group.chunks()).allMatch(ChunkFooter::small))) {
            return Optional.empty();
        }
        return NativeReader.pageIndex(source, block, schema, options).map(file -> new PageIndex(file, doubts, schema, base));
    }

    @Override
    public ColumnIndex getColumnIndex(ColumnPath column)
    {
        return doubts.believed(file.getColumnIndex(column), schema.descriptorsByPath().get(Arrays.asList(column.toArray())));
    }

    @Override
    public OffsetIndex getOffsetIndex(ColumnPath column)
    {
        OffsetIndex offsets = file.getOffsetIndex(column);
        return offsets == null || base == 0 ? offsets : new Moved(offsets, base);
    }

    private record Moved(OffsetIndex file, long base)
            implements OffsetIndex
    {
        @Override
        public int getPageCount()
        {
            return file.getPageCount();
        }

        @Override
        public long getOffset(int page)
        {
            return base + file.getOffset(page);
        }

        @Override
        public int getCompressedPageSize(int page)
        {
            return file.getCompressedPageSize(page);
        }

        @Override
        public long getFirstRowIndex(int page)
        {
            return file.getFirstRowIndex(page);
        }

        @Override
        public int getPageOrdinal(int page)
        {
            return file.getPageOrdinal(page);
        }

        @Override
        public long getLastRowIndex(int page, long rows)
        {
            return file.getLastRowIndex(page, rows);
        }
    }
}
