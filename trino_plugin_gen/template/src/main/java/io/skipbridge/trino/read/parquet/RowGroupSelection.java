package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.read.footer.ChunkFooter;
import io.skipbridge.trino.read.footer.Footer;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.read.footer.RowGroupFooter;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetDataSource;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.parquet.metadata.BlockMetadata;
import io.trino.parquet.metadata.ColumnChunkMetadata;
import io.trino.parquet.metadata.PrunedBlockMetadata;
import io.trino.parquet.reader.RowGroupInfo;
import io.trino.spi.TrinoException;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.internal.filter2.columnindex.ColumnIndexStore;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Selects the row groups of a file that belong to a split and may hold matching rows, by the tests of Trino's reader. */
final class RowGroupSelection
{
    private RowGroupSelection() {}

    /**
     * @param base position of the file in the source
     * @param firstRow the number of the file's first row among all rows of the source
     */
    static List<RowGroupInfo> select(
            PlannedFile file,
            Footer footer,
            ReadSchema schema,
            ParquetDataSource source,
            ParquetReaderOptions options,
            long base,
            long firstRow)
            throws IOException
    {
        List<RowGroupInfo> selected = new ArrayList<>();
        long row = firstRow;
        for (RowGroupFooter group : footer.rowGroups()) {
            if (group.rows() > 0 && file.contains(group.startingPosition())) {
                List<ColumnChunkMetadata> chunks = new ArrayList<>(group.chunks().length);
                for (int i = 0; i < group.chunks().length; i++) {
                    requireCodec(file, group.chunks()[i], schema.descriptor(i));
                    chunks.add(group.chunks()[i].metadata(schema.descriptor(i), footer, base));
                }
                BlockMetadata block = new BlockMetadata(row, group.rows(), chunks);
                Optional<ColumnIndexStore> pageIndex = PageIndex.of(group, footer.doubts(), source, block, schema, options, base);
                PrunedBlockMetadata pruned = PrunedBlockMetadata.createPrunedColumnsMetadata(block, source.getId(), schema.descriptorsByPath());
                if (schema.predicate().domain().isAll() || NativeReader.mayMatch(pruned, schema, source, pageIndex)) {
                    // a page index describes the original pages, so pages with one are not rewritten
                    boolean rewritten = pageIndex.isEmpty() && source instanceof ConcatenatedDataSource;
                    PrunedBlockMetadata prepared = rewritten ? prepare(group, block, pruned, schema, (ConcatenatedDataSource) source) : pruned;
                    selected.add(new RowGroupInfo(prepared, row, pageIndex));
                }
            }
            row += group.rows();
        }
        return selected;
    }

    private static void requireCodec(PlannedFile file, ChunkFooter chunk, ColumnDescriptor column)
    {
        chunk.unknownCodec().ifPresent(codec -> {
            throw new TrinoException(
                    BridgeErrorCode.UNSUPPORTED_FILE,
                    "%s: column %s is compressed by %s, which Trino's reader does not know. Rewrite the file with zstd, snappy or gzip".formatted(
                            file.path(), String.join(".", column.getPath()), codec));
        });
    }

    /** The block for the reader, with small compressed chunks rewritten. */
    private static PrunedBlockMetadata prepare(RowGroupFooter group, BlockMetadata block, PrunedBlockMetadata pruned, ReadSchema schema, ConcatenatedDataSource source)
            throws IOException
    {
        List<ColumnChunkMetadata> chunks = new ArrayList<>(group.chunks().length);
        boolean changed = false;
        for (int i = 0; i < group.chunks().length; i++) {
            ChunkFooter chunk = group.chunks()[i];
            ChunkInflater.Inflated inflated = chunk.inflatable() ? source.inflate(chunk) : null;
            changed |= inflated != null;
            chunks.add(inflated == null
                    ? block.columns().get(i)
                    : chunk.inflated(schema.descriptor(i), source.append(inflated.bytes()), inflated.firstPage(), inflated.bytes().length));
        }
        if (!changed) {
            return pruned;
        }
        BlockMetadata prepared = new BlockMetadata(block.fileRowCountOffset(), block.rowCount(), chunks);
        return PrunedBlockMetadata.createPrunedColumnsMetadata(prepared, source.getId(), schema.descriptorsByPath());
    }

    /** The number of rows in the row groups of the split. */
    static long rows(PlannedFile file, Footer footer)
    {
        long rows = 0;
        for (RowGroupFooter group : footer.rowGroups()) {
            if (file.contains(group.startingPosition())) {
                rows += group.rows();
            }
        }
        return rows;
    }
}
