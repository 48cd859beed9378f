package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.UnsupportedSlice;
import org.apache.avro.Schema;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.common.config.HoodieMemoryConfig;
import org.apache.hudi.common.config.RecordMergeMode;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.engine.HoodieReaderContext;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.log.HoodieMergedLogRecordReader;
import org.apache.hudi.common.table.log.KeySpec;
import org.apache.hudi.common.table.log.block.HoodieDataBlock;
import org.apache.hudi.common.table.log.block.HoodieDeleteBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock;
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
import org.apache.hudi.common.util.collection.ClosableIterator;
import org.apache.hudi.common.util.collection.ExternalSpillableMap;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.storage.HoodieStorage;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/**
 * Reads the records of a slice's logs into memory, by key, as Hudi's own loader does. It differs in how it measures memory: Hudi's way walks over
 * objects with a library that inspects the running JVM. And where the logs fit in memory as they are, it keeps their bytes, and decodes of a record
 * what merging asks for; the rest waits until the record is returned.
 */
final class LogRecords
        implements FileGroupRecordBufferLoader<IndexedRecord>
{
    private final RecordSizes sizes;
    private final LogStorage logs;
    private final OlderBlocks older;
    private final long maxMemoryBytes;
    private final Optional<String> baseInstant;
    private long keptBytes;
    private Buffer buffer;

    /** @param baseInstant that wrote the base file */
    LogRecords(RecordSizes sizes, LogStorage logs, OlderBlocks older, long maxMemoryBytes, Optional<String> baseInstant)
    {
        this.baseInstant = baseInstant;
        this.maxMemoryBytes = maxMemoryBytes;
        this.sizes = sizes;
        this.logs = logs;
        this.older = older;
    }

    /** An estimate of the memory that the records take now. */
    long memoryBytes()
    {
        return buffer == null ? 0 : buffer.inMemory() * sizes.last() + buffer.positions.bytes() + keptBytes;
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
        long size = slice.getLogFiles().stream().mapToLong(HoodieLogFile::getFileSize).sum();
        boolean keepsBytes = size <= maxMemoryBytes / 2;
        keptBytes = keepsBytes ? size : 0;
        buffer = new Buffer(context, table, properties, orderingFields, updates, keepsBytes);
        try (HoodieMergedLogRecordReader<IndexedRecord> reader = HoodieMergedLogRecordReader.<IndexedRecord>newBuilder()
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
            if (reader.getTotalCorruptBlocks() > 0) {
                slice.getLogFiles().forEach(this::checkEnds);
            }
            return Pair.of(buffer, reader.getValidBlockInstants());
        }
    }

    private void checkEnds(HoodieLogFile file)
    {
        try {
            LogBytes log = logs.log(file.getPath());
            int size = Math.toIntExact(log.size());
            LogBytes.Range whole = log.range(0, size);
            new BlockEnds(file.getPath().toString(), whole.bytes(), whole.offset(), size).check();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private final class Buffer
            extends KeyBasedFileGroupRecordBuffer<IndexedRecord>
    {
        private final boolean keepsBytes;
        private final Set<String> mergedNames;
        private final boolean[] merged;
        private final Schema tableSchema;
        private final Positions positions;
        private Iterator<Long> places;

        Buffer(
                HoodieReaderContext<IndexedRecord> context,
                HoodieTableMetaClient table,
                TypedProperties properties,
                List<String> orderingFields,
                UpdateProcessor<IndexedRecord> updates,
                boolean keepsBytes)
        {
            super(context, table, context.getMergeMode(), table.getTableConfig().getPartialUpdateMode(), properties, orderingFields, updates);
            boolean wholeRecords = context.getMergeMode() != RecordMergeMode.CUSTOM && table.getTableConfig().getPartialUpdateMode().isEmpty();
            this.keepsBytes = keepsBytes && wholeRecords && !context.getSchemaHandler().getInternalSchemaOpt().isPresent();
            this.mergedNames = mergedNames(table.getTableConfig(), orderingFields);
            this.merged = merged();
            this.tableSchema = context.getSchemaHandler().getTableSchema().toAvroSchema();
            this.positions = new Positions(table.getTableConfig(), baseInstant);
        }

        @Override
        public void processDataBlock(HoodieDataBlock block, Option<KeySpec> keys)
                throws IOException
        {
            begin(block);
            super.processDataBlock(block, keys);
            end();
        }

        @Override
        public void processNextDataRecord(BufferedRecord<IndexedRecord> record, Serializable key)
                throws IOException
        {
            positions.see(record.getRecordKey());
            super.processNextDataRecord(record, row(record.getRecordKey()));
        }

        @Override
        public void processNextDeletedRecord(DeleteRecord record, Serializable key)
        {
            String bare = positions.bare(record.getRecordKey());
            super.processNextDeletedRecord(DeleteRecord.create(bare, record.getPartitionPath(), record.getOrderingValue()), row(bare));
        }

        private void begin(HoodieLogBlock block)
                throws IOException
        {
            places = positions.of(block);
            if (places == null && positions.decide()) {
                // from the first block without positions on, keys decide
                positions.useKeys();
                for (Serializable place : new ArrayList<>(records.keySet())) {
                    BufferedRecord<IndexedRecord> record = records.get(place);
                    if (records.containsKey(record.getRecordKey())) {
                        // Hudi keeps any of them
                        throw new UnsupportedSlice("logs change several rows with the key '%s' by position, and others by key. Read the table once it is compacted, or with Spark".formatted(record.getRecordKey()));
                    }
                    records.remove(place);
                    records.put(record.getRecordKey(), record);
                }
            }
        }

        /** What the records are kept by: the next position, or the key. */
        private Serializable row(String key)
        {
            if (places == null) {
                return key;
            }
            long place = positions.next(places, key);
            return positions.decide() ? (Serializable) place : key;
        }

        private void end()
        {
            if (places != null && places.hasNext()) {
                throw Positions.damaged("it has fewer records than positions", null);
            }
        }

        @Override
        protected boolean hasNextBaseRecord(IndexedRecord row)
                throws IOException
        {
            String key = positions.isEmpty() ? null : readerContext.getRecordContext().getRecordKey(row, readerSchema);
            long place = positions.check(key);
            return positions.decide() ? hasNextBaseRecord(row, records.remove(place)) : super.hasNextBaseRecord(row);
        }

        @Override
        protected boolean hasNextLogRecord()
        {
            positions.checkEnd();
            return super.hasNextLogRecord();
        }

        /** The fields that merging asks for. */
        private Set<String> mergedNames(HoodieTableConfig table, List<String> orderingFields)
        {
            Set<String> names = new HashSet<>(List.of(HoodieRecord.RECORD_KEY_METADATA_FIELD, HoodieRecord.HOODIE_IS_DELETED_FIELD, HoodieRecord.OPERATION_METADATA_FIELD));
            if (!table.populateMetaFields()) {
                Arrays.stream(table.getRecordKeyFields().orElse(new String[0])).forEach(field -> names.add(field.split("\\.")[0]));
            }
            orderingFields.forEach(field -> names.add(field.split("\\.")[0]));
            deleteContext.getCustomDeleteMarkerKeyValue().ifPresent(marker -> names.add(marker.getLeft()));
            return names;
        }

        /** Which fields of the required schema merging asks for. A field that is left out is only decoded later. */
        private boolean[] merged()
        {
            List<Schema.Field> fields = readerSchema.toAvroSchema().getFields();
            boolean[] found = new boolean[fields.size()];
            for (int i = 0; i < found.length; i++) {
                found[i] = mergedNames.contains(fields.get(i).name());
            }
            return found;
        }

        @Override
        protected Pair<ClosableIterator<IndexedRecord>, HoodieSchema> getRecordsIterator(HoodieDataBlock block, Option<KeySpec> keys)
        {
            requireSchema(block);
            takeTableNames(block);
            Optional<ClosableIterator<IndexedRecord>> rows = ofOlderSchema(block);
            if (rows.isPresent()) {
                return Pair.of(rows.get(), readerSchema);
            }
            if (block.getBlockType() == HoodieLogBlock.HoodieLogBlockType.HFILE_DATA_BLOCK && !keys.isPresent()) {
                return Pair.of(ofHFile(block), readerSchema);
            }
            if (!keepsBytes || keys.isPresent() || block.getBlockType() != HoodieLogBlock.HoodieLogBlockType.AVRO_DATA_BLOCK || block.containsPartialUpdates()) {
                return super.getRecordsIterator(block, keys);
            }
            HoodieLogBlock.HoodieLogBlockContentLocation location = block.getBlockContentLocation().orElse(null);
            String written = block.getLogBlockHeader().get(HoodieLogBlock.HeaderMetadataType.SCHEMA);
            Optional<LogSchema> schema = location == null ? Optional.empty() : LogSchema.of(written, readerSchema.toAvroSchema());
            if (schema.isEmpty()) {
                return super.getRecordsIterator(block, keys);
            }
            LogBytes.Range content = content(location);
            return Pair.of(new LogRows(schema.get(), content.bytes(), content.offset(), Math.toIntExact(location.getBlockSize()), merged), block.getSchema());
        }

        /** Records of Avro and of HFiles cannot be told apart without the schema that wrote them. */
        private static void requireSchema(HoodieDataBlock block)
        {
            HoodieLogBlock.HoodieLogBlockType type = block.getBlockType();
            boolean isAvro = type == HoodieLogBlock.HoodieLogBlockType.AVRO_DATA_BLOCK || type == HoodieLogBlock.HoodieLogBlockType.HFILE_DATA_BLOCK;
            if (isAvro && block.getLogBlockHeader().get(HoodieLogBlock.HeaderMetadataType.SCHEMA) == null) {
                String where = block.getBlockContentLocation().map(each -> "%s at byte %d".formatted(each.getLogFile().getPath(), each.getContentPositionInLogFile())).orElse("a log");
                throw new UnsupportedSlice("the block in %s has no schema of its own, so its records cannot be read. Restore the log, or write it again".formatted(where));
            }
        }

        /** From here on the block's schema has the table's names. */
        private void takeTableNames(HoodieDataBlock block)
        {
            String written = block.getLogBlockHeader().get(HoodieLogBlock.HeaderMetadataType.SCHEMA);
            String spelled = written == null ? null : TableNames.in(written, tableSchema);
            if (!Objects.equals(written, spelled)) {
                if (block.containsPartialUpdates()) {
                    throw new UnsupportedSlice("a block of its logs holds updates of some columns, whose names differ from the table's in case. Read the table once it is compacted, or with Spark");
                }
                block.getLogBlockHeader().put(HoodieLogBlock.HeaderMetadataType.SCHEMA, spelled);
            }
        }

        private LogBytes.Range content(HoodieLogBlock.HoodieLogBlockContentLocation location)
        {
            try {
                return logs.log(location.getLogFile().getPath()).range(location.getContentPositionInLogFile(), Math.toIntExact(location.getBlockSize()));
            }
            catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public void processDeleteBlock(HoodieDeleteBlock block)
                throws IOException
        {
            older.columns(block, mergedNames);
            begin(block);
            super.processDeleteBlock(block);
            end();
        }

        /** Hudi's own way takes classes of Hadoop. */
        private ClosableIterator<IndexedRecord> ofHFile(HoodieDataBlock block)
        {
            HoodieLogBlock.HoodieLogBlockContentLocation location = block.getBlockContentLocation().get();
            String written = block.getLogBlockHeader().get(HoodieLogBlock.HeaderMetadataType.SCHEMA);
            LogBytes.Range content = content(location);
            Schema own = new Schema.Parser().setValidateDefaults(false).parse(written);
            try {
                return new HFileRows(content.bytes(), content.offset(), Math.toIntExact(location.getBlockSize()), own, readerSchema.toAvroSchema());
            }
            catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private Optional<ClosableIterator<IndexedRecord>> ofOlderSchema(HoodieDataBlock block)
        {
            try {
                return older.rows(block, readerSchema.toAvroSchema(), mergedNames);
            }
            catch (IOException e) {
                throw new UncheckedIOException(e);
            }
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
