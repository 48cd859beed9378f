package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.LogColumns;
import io.skipbridge.trino.read.merge.RowPages;
import io.skipbridge.trino.read.merge.SliceFiles;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.StoredColumns;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.trino.spi.Page;
import org.apache.avro.JsonProperties;
import org.apache.avro.Schema;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.common.table.log.block.HoodieDataBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock.HeaderMetadataType;
import org.apache.hudi.common.util.collection.ClosableIterator;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Rows of blocks that were written before columns were renamed, retyped or dropped, or with times in a unit that the table does not have. They are
 * read under the block's names and types, and returned under the table's: values are those that base files of the same instant would show.
 */
final class OlderBlocks
{
    private static final Recent<String, Schema> SCHEMAS = new Recent<>(written -> new Schema.Parser().setValidateDefaults(false).parse(written));
    private static final int PAGE_ROWS = 4_096;

    private final SliceFiles files;
    private final LogStorage logs;

    OlderBlocks(SliceFiles files, LogStorage logs)
    {
        this.files = files;
        this.logs = logs;
    }

    /**
     * The rows of a block in the fields of a schema; empty if the block has them by name, and times in their units.
     *
     * @param merged the fields that merging asks for
     * @throws UnsupportedSlice if the block is not as the table's history says, or if merging depends on a field that was changed
     */
    Optional<ClosableIterator<IndexedRecord>> rows(HoodieDataBlock block, Schema required, Set<String> merged)
            throws IOException
    {
        Optional<LogColumns> found = columns(block, merged);
        if (found.isEmpty()) {
            return inOtherUnits(block, required);
        }
        String written = block.getLogBlockHeader().get(HeaderMetadataType.SCHEMA);
        if (written == null) {
            // of Parquet, as for others it is asked for before
            throw refused("has no schema of its own");
        }
        Schema own = SCHEMAS.get(written);
        Set<String> names = new HashSet<>();
        own.getFields().forEach(field -> names.add(AvroTypes.lower(field.name())));
        if (!names.containsAll(found.get().names())) {
            throw refused("lacks columns that the table had when it was written");
        }
        if (required.getFields().stream().allMatch(field -> found.get().isSame(field.name()))) {
            return inOtherUnits(block, required);
        }
        requireWholeRows(block, required);
        BaseColumns columns = new BaseColumns(required);
        requireTimes(found.get(), own, columns);
        StoredColumns stored = found.get().stored(columns.columns());
        return Optional.of(new PageRecords(columns, new TablePages(pages(block, written, own, stored.columns()), stored)));
    }

    /** The rows of a block whose times are in other units than the table's; Avro's reader takes their numbers as they are. Empty for other blocks. */
    private Optional<ClosableIterator<IndexedRecord>> inOtherUnits(HoodieDataBlock block, Schema required)
            throws IOException
    {
        String written = block.getLogBlockHeader().get(HeaderMetadataType.SCHEMA);
        if (written == null || block.getBlockType() == HoodieLogBlock.HoodieLogBlockType.PARQUET_DATA_BLOCK || !hasOtherUnits(SCHEMAS.get(written), required)) {
            return Optional.empty();
        }
        requireWholeRows(block, required);
        BaseColumns columns = new BaseColumns(required);
        return Optional.of(new PageRecords(columns, pages(block, written, SCHEMAS.get(written), columns.columns())));
    }

    private static boolean hasOtherUnits(Schema written, Schema table)
    {
        Schema own = nonNull(written);
        Schema same = nonNull(table);
        if (own.getType() != same.getType()) {
            return false;
        }
        return switch (own.getType()) {
            case RECORD -> same.getFields().stream().anyMatch(field -> own.getField(field.name()) != null && hasOtherUnits(own.getField(field.name()).schema(), field.schema()));
            case ARRAY -> hasOtherUnits(own.getElementType(), same.getElementType());
            case MAP -> hasOtherUnits(own.getValueType(), same.getValueType());
            // microseconds may be milliseconds in truth, and are taken for what the table says
            case LONG -> AvroTypes.unitOf(own) == AvroTypes.TimeUnit.MILLIS && AvroTypes.unitOf(same) == AvroTypes.TimeUnit.MICROS;
            default -> false;
        };
    }

    /** The only type besides null; a union of several stays as it is. */
    private static Schema nonNull(Schema schema)
    {
        List<Schema> types = schema.getType() == Schema.Type.UNION ? schema.getTypes().stream().filter(type -> type.getType() != Schema.Type.NULL).toList() : List.of();
        return types.size() == 1 ? types.getFirst() : schema;
    }

    private static void requireWholeRows(HoodieDataBlock block, Schema required)
    {
        if (block.containsPartialUpdates()) {
            throw refused("holds updates of some columns");
        }
        for (Schema.Field field : required.getFields()) {
            if (field.hasDefaultValue() && field.defaultVal() != JsonProperties.NULL_VALUE) {
                throw refused("may lack the column %s, which has a default".formatted(field.name()));
            }
        }
    }

    /**
     * Some releases wrote milliseconds as {@code timestamp-micros}. Hudi's reader takes them for what the table says, by the names of fields, which
     * differ here.
     */
    private static void requireTimes(LogColumns found, Schema own, BaseColumns columns)
    {
        for (int i = 0; i < columns.size(); i++) {
            Schema.Field field = columns.schema().getFields().get(i);
            if (field.schema().toString().contains("timestamp-millis")
                    && projected(own, found.stored(List.of(columns.columns().get(i))).columns()).toString().contains("timestamp-micros")) {
                throw refused("has times in the column %s in another unit than the table".formatted(field.name()));
            }
        }
    }

    /** How a block has the columns; empty if it has them by name. */
    Optional<LogColumns> columns(HoodieLogBlock block, Set<String> merged)
    {
        Optional<LogColumns> found = files.logColumns(block.getLogBlockHeader().getOrDefault(HeaderMetadataType.INSTANT_TIME, ""));
        found.ifPresent(columns -> merged.stream().filter(field -> !columns.isSame(field)).findFirst().ifPresent(field -> {
            throw refused("is older than a change of the column %s, by which rows are merged".formatted(field));
        }));
        return found;
    }

    private RowPages pages(HoodieDataBlock block, String written, Schema own, List<SliceRequest.Column> stored)
            throws IOException
    {
        HoodieLogBlock.HoodieLogBlockContentLocation location = block.getBlockContentLocation().get();
        LogBytes log = logs.log(location.getLogFile().getPath());
        long position = location.getContentPositionInLogFile();
        int length = Math.toIntExact(location.getBlockSize());
        return switch (block.getBlockType()) {
            case PARQUET_DATA_BLOCK -> files.readInlineParquet(log.log(), position, length, stored);
            case HFILE_DATA_BLOCK -> {
                LogBytes.Range range = log.range(position, length);
                yield new AvroPages(new HFileRows(range.bytes(), range.offset(), length, own, projected(own, stored)), new RowWriter(stored));
            }
            case AVRO_DATA_BLOCK -> {
                Schema wanted = projected(own, stored);
                LogSchema schema = LogSchema.of(written, wanted).orElseThrow(() -> refused("has a schema with aliases"));
                boolean[] every = new boolean[wanted.getFields().size()];
                Arrays.fill(every, true);
                LogBytes.Range range = log.range(position, length);
                yield new AvroPages(new LogRows(schema, range.bytes(), range.offset(), length, every), new RowWriter(stored));
            }
            default -> throw refused("is of the kind %s".formatted(block.getBlockType()));
        };
    }

    /** The stored columns that the block has, in its own types. */
    private static Schema projected(Schema own, List<SliceRequest.Column> stored)
    {
        List<Schema.Field> fields = new ArrayList<>();
        for (SliceRequest.Column column : stored) {
            Schema.Field field = AvroWriter.find(own, column.name());
            if (field != null) {
                fields.add(new Schema.Field(field.name(), field.schema()));
            }
        }
        return Schema.createRecord(own.getName(), own.getDoc(), own.getNamespace(), own.isError(), fields);
    }

    private static UnsupportedSlice refused(String what)
    {
        return new UnsupportedSlice("a block of its logs, which are older than the table's schema, %s. Read the table once it is compacted, or with Spark".formatted(what));
    }

    private record AvroPages(ClosableIterator<IndexedRecord> rows, RowWriter writer)
            implements RowPages
    {
        @Override
        public Page next()
        {
            List<IndexedRecord> read = new ArrayList<>();
            while (read.size() < PAGE_ROWS && rows.hasNext()) {
                read.add(rows.next());
            }
            return read.isEmpty() ? null : writer.write(read);
        }

        @Override
        public void close()
        {
            rows.close();
        }
    }

    private record TablePages(RowPages pages, StoredColumns stored)
            implements RowPages
    {
        @Override
        public Page next()
                throws IOException
        {
            Page page = pages.next();
            return page == null ? null : stored.toTable().apply(page);
        }

        @Override
        public void close()
                throws IOException
        {
            pages.close();
        }
    }
}
