package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.MergedPages;
import io.skipbridge.trino.read.merge.SliceMerger;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.trino.spi.classloader.ThreadContextClassLoader;
import org.apache.avro.Schema;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.common.config.HoodieMemoryConfig;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.HoodieBaseFile;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.read.HoodieFileGroupReader;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.storage.StoragePath;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Merges slices with Hudi's own reader, so that rows are those that Hudi's engines return. */
public final class HudiSliceMerger
        implements SliceMerger
{
    private static final Recent<Requested, HoodieSchema> REQUESTED = new Recent<>(each -> requested(each.table(), each.columns()));

    private final long maxMemoryBytes;

    private record Requested(HoodieSchema table, List<SliceRequest.Column> columns) {}

    public HudiSliceMerger()
    {
        this(Math.clamp(Runtime.getRuntime().maxMemory() / 64, 32L << 20, 1L << 30));
    }

    /** @param maxMemoryBytes what the log rows of one slice may take in memory; the others are spilled */
    HudiSliceMerger(long maxMemoryBytes)
    {
        this.maxMemoryBytes = maxMemoryBytes;
    }

    @Override
    public MergedPages merge(SliceRequest request)
    {
        // Hudi looks up classes by the thread's loader
        try (ThreadContextClassLoader _ = new ThreadContextClassLoader(HudiSliceMerger.class.getClassLoader())) {
            return open(request);
        }
    }

    private MergedPages open(SliceRequest request)
    {
        request.basePath().filter(path -> !path.endsWith(".parquet")).ifPresent(path -> {
            throw new UnsupportedSlice("only base files of Parquet are merged. Rewrite the table as Parquet");
        });
        LogStorage logs = new LogStorage(request);
        PlannedTable table = new PlannedTable(request.properties(), logs);
        SliceContext context = new SliceContext(table, logs, request.files());
        SpillDirectory spill = new SpillDirectory();
        TypedProperties properties = new TypedProperties();
        properties.putAll(table.getTableConfig().getProps());
        properties.setProperty(HoodieMemoryConfig.SPILLABLE_MAP_BASE_PATH.key(), spill.path().toString());
        Option<HoodieBaseFile> base = Option.ofNullable(request.basePath().map(HoodieBaseFile::new).orElse(null));
        Optional<String> baseInstant = request.basePath().map(_ -> base.get().getCommitTime());
        LogRecords records = new LogRecords(context.sizes(), logs, new OlderBlocks(request.files(), logs), maxMemoryBytes, baseInstant);
        HoodieFileGroupReader<IndexedRecord> reader;
        try {
            reader = HoodieFileGroupReader.<IndexedRecord>newBuilder()
                    .withReaderContext(context)
                    .withHoodieTableMetaClient(table)
                    .withLatestCommitTime(table.instant())
                    .withBaseFileOption(base)
                    .withLogFiles(request.logs().stream().map(log -> new HoodieLogFile(new StoragePath(log.path()), log.size())))
                    .withPartitionPath(partition(request.logs().getFirst().path(), table.getBasePath()))
                    .withDataSchema(table.schema())
                    .withRequestedSchema(REQUESTED.get(new Requested(table.schema(), request.columns())))
                    .withProps(properties)
                    .withRecordBufferLoader(records)
                    .build();
        }
        catch (IllegalArgumentException e) {
            throw new UnsupportedSlice("Hudi's reader refuses the table: %s. Read the table once it is compacted, or with Spark".formatted(e.getMessage()), e);
        }
        return new MergedSlice(reader, records, logs, spill, request.columns());
    }

    /** The partition of a log: its path between the table's and the file's name. */
    private static String partition(String log, StoragePath table)
    {
        String folder = new StoragePath(log).getParent().toUri().getPath();
        String base = table.toUri().getPath();
        return folder.length() > base.length() && folder.startsWith(base) ? folder.substring(base.length() + 1) : "";
    }

    /** The table's schema with the requested columns alone, or with its first field, since a record needs one. */
    private static HoodieSchema requested(HoodieSchema table, List<SliceRequest.Column> columns)
    {
        Schema schema = table.toAvroSchema();
        Set<Schema.Field> wanted = new LinkedHashSet<>();
        for (SliceRequest.Column column : columns) {
            Schema.Field field = AvroWriter.find(schema, column.name());
            if (field != null) {
                wanted.add(field);
            }
        }
        if (wanted.isEmpty()) {
            wanted.add(schema.getFields().getFirst());
        }
        List<Schema.Field> fields = new ArrayList<>();
        for (Schema.Field field : wanted) {
            fields.add(new Schema.Field(field, field.schema()));
        }
        return HoodieSchema.fromAvroSchema(Schema.createRecord(schema.getName(), schema.getDoc(), schema.getNamespace(), schema.isError(), fields));
    }
}
