package io.skipbridge.trino.hudi;

import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.common.config.HoodieMemoryConfig;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.engine.HoodieReaderContext;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.log.HoodieMergedLogRecordReader;
import org.apache.hudi.common.table.read.BaseFileUpdateCallback;
import org.apache.hudi.common.table.read.BufferedRecord;
import org.apache.hudi.common.table.read.HoodieReadStats;
import org.apache.hudi.common.table.read.InputSplit;
import org.apache.hudi.common.table.read.ReaderParameters;
import org.apache.hudi.common.table.read.UpdateProcessor;
import org.apache.hudi.common.table.read.buffer.FileGroupRecordBufferLoader;
import org.apache.hudi.common.table.read.buffer.HoodieFileGroupRecordBuffer;
import org.apache.hudi.common.table.read.buffer.KeyBasedFileGroupRecordBuffer;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.ExternalSpillableMap;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.storage.HoodieStorage;

import java.io.IOException;
import java.io.Serializable;
import java.util.List;

/**
 * Reads the records of a slice's logs into memory, by key, as Hudi's own loader does. It differs in how it measures memory: Hudi's way walks over
 * objects with a library that inspects the running JVM.
 */
final class LogRecords
        implements FileGroupRecordBufferLoader<IndexedRecord>
{
    private final RecordSizes sizes;
    private final long maxMemoryBytes;
    private Buffer buffer;

    LogRecords(RecordSizes sizes, long maxMemoryBytes)
    {
        this.maxMemoryBytes = maxMemoryBytes;
        this.sizes = sizes;
    }

    /** An estimate of the memory that the records take now. */
    long memoryBytes()
    {
        return buffer == null ? 0 : buffer.inMemory() * sizes.last();
    }

    @Override
    public Pair<HoodieFileGroupRecordBuffer<IndexedRecord>, List<String>> getRecordBuffer(
            HoodieReaderContext<IndexedRecord> context,
            HoodieStorage storage,
            InputSplit slice,
            List<String> orderingFields,
            HoodieTableMetaClient table,
            TypedProperties properties,
            ReaderParameters parameters,
            HoodieReadStats stats,
            Option<BaseFileUpdateCallback<IndexedRecord>> callback)
    {
        UpdateProcessor<IndexedRecord> updates = UpdateProcessor.create(stats, context, parameters.emitDeletes(), callback, properties);
        buffer = new Buffer(context, table, properties, orderingFields, updates);
        try (HoodieMergedLogRecordReader<IndexedRecord> logs = HoodieMergedLogRecordReader.<IndexedRecord>newBuilder()
                .withHoodieReaderContext(context)
                .withStorage(storage)
                .withLogFiles(slice.getLogFiles())
                .withReverseReader(false)
                .withBufferSize(HoodieMemoryConfig.DEFAULT_MR_MAX_DFS_STREAM_BUFFER_SIZE)
                .withInstantRange(context.getInstantRange())
                .withPartition(slice.getPartitionPath())
                .withRecordBuffer(buffer)
                .withAllowInflightInstants(parameters.allowInflightInstants())
                .withMetaClient(table)
                .build()) {
            return Pair.of(buffer, logs.getValidBlockInstants());
        }
    }

    private final class Buffer
            extends KeyBasedFileGroupRecordBuffer<IndexedRecord>
    {
        Buffer(
                HoodieReaderContext<IndexedRecord> context,
                HoodieTableMetaClient table,
                TypedProperties properties,
                List<String> orderingFields,
                UpdateProcessor<IndexedRecord> updates)
        {
            super(context, table, context.getMergeMode(), table.getTableConfig().getPartialUpdateMode(), properties, orderingFields, updates);
        }

        @Override
        protected ExternalSpillableMap<Serializable, BufferedRecord<IndexedRecord>> initializeRecordsMap(String directory)
                throws IOException
        {
            return new ExternalSpillableMap<>(
                    maxMemoryBytes,
                    directory,
                    key -> 2L * key.toString().length(),
                    readerContext.getRecordSizeEstimator(),
                    ExternalSpillableMap.DiskMapType.BITCASK,
                    readerContext.getRecordSerializer(),
                    false,
                    "logs");
        }

        long inMemory()
        {
            return ((ExternalSpillableMap<?, ?>) records).getInMemoryMapNumEntries();
        }
    }
}
