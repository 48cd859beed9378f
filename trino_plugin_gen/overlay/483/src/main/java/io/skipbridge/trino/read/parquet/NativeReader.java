package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.read.footer.ReadSchema;
import io.trino.memory.context.AggregatedMemoryContext;
import io.trino.parquet.DiskRange;
import io.trino.parquet.ParquetDataSource;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.parquet.metadata.BlockMetadata;
import io.trino.parquet.metadata.PrunedBlockMetadata;
import io.trino.parquet.predicate.PredicateUtils;
import io.trino.parquet.predicate.TupleDomainParquetPredicate;
import io.trino.parquet.reader.ParquetReader;
import io.trino.parquet.reader.TrinoColumnIndexStore;
import org.apache.parquet.internal.filter2.columnindex.ColumnIndexStore;

import java.io.IOException;
import java.util.Optional;
import java.util.function.Function;

/** Calls Trino's Parquet reader where it differs between families of releases. */
final class NativeReader
{
    private static final int DOMAIN_COMPACTION_THRESHOLD = 1_000;

    private NativeReader() {}

    static long offset(DiskRange range)
    {
        return range.offset();
    }

    static long length(DiskRange range)
    {
        return range.length();
    }

    static Optional<ColumnIndexStore> pageIndex(ParquetDataSource source, BlockMetadata block, ReadSchema schema, ParquetReaderOptions options)
    {
        return TrinoColumnIndexStore.getColumnIndexStore(source, block, schema.descriptorsByPath(), schema.predicate().domain(), options, Optional.empty());
    }

    /** False if the row group's statistics, page index or dictionaries prove that none of its rows matches. */
    static boolean mayMatch(PrunedBlockMetadata block, ReadSchema schema, ParquetDataSource source, Optional<ColumnIndexStore> pageIndex)
            throws IOException
    {
        ReadSchema.GroupPredicate asked = schema.predicate(block.getRowCount());
        return PredicateUtils.predicateMatches(
                asked.predicate(),
                block,
                source,
                schema.filteredByPath(),
                asked.domain(),
                pageIndex,
                Optional.empty(),
                schema.timeZone(),
                DOMAIN_COMPACTION_THRESHOLD,
                Optional.empty());
    }

    static ParquetReader open(
            CombinedFiles group,
            AggregatedMemoryContext memory,
            ParquetReaderOptions options,
            Function<Exception, RuntimeException> failure)
            throws IOException
    {
        boolean pageIndex = group.rowGroups().stream().anyMatch(rowGroup -> rowGroup.columnIndexStore().isPresent());
        Optional<TupleDomainParquetPredicate> predicate = pageIndex ? Optional.of(group.schema().predicate().predicate()) : Optional.empty();
        return new ParquetReader(
                group.createdBy(),
                group.schema().columns(),
                false,
                group.rowGroups(),
                group.source(),
                group.schema().timeZone(),
                memory,
                options,
                failure,
                predicate,
                Optional.empty(),
                Optional.empty());
    }
}
