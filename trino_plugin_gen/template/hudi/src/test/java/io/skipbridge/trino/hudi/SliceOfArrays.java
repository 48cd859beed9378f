package io.skipbridge.trino.hudi;

import io.airlift.slice.Slice;
import io.skipbridge.trino.read.merge.LogColumns;
import io.skipbridge.trino.read.merge.MergedPages;
import io.skipbridge.trino.read.merge.RowPages;
import io.skipbridge.trino.read.merge.SliceFiles;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeUtils;
import org.apache.avro.Schema;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A slice in memory: rows of a base file as Avro's values, and bytes of logs. */
final class SliceOfArrays
        implements SliceFiles
{
    private final Schema schema;
    private final Map<String, String> properties = new HashMap<>();
    private final List<Object[]> base = new ArrayList<>();
    private final List<byte[]> logs = new ArrayList<>();
    final List<String> columnsOfBase = new ArrayList<>();
    final Map<String, LogColumns> older = new HashMap<>();
    Runnable onPage = () -> {};

    /** A table of version 9 without a base file. */
    SliceOfArrays(Schema schema, String mergeMode)
    {
        this.schema = schema;
        properties.put("hoodie.table.name", "t");
        properties.put("hoodie.table.type", "MERGE_ON_READ");
        properties.put("hoodie.table.base.file.format", "PARQUET");
        properties.put("hoodie.timeline.layout.version", "2");
        properties.put("hoodie.table.version", "9");
        properties.put("hoodie.table.recordkey.fields", "id");
        properties.put("hoodie.table.ordering.fields", "ts");
        properties.put("hoodie.record.merge.mode", mergeMode);
        properties.put("skipbridge.hudi.base_path", "file:///t");
        properties.put("skipbridge.hudi.schema", schema.toString());
        properties.put("skipbridge.hudi.instant", "009");
    }

    SliceOfArrays set(String property, String value)
    {
        properties.put(property, value);
        return this;
    }

    SliceOfArrays base(Object[]... rows)
    {
        base.addAll(List.of(rows));
        return this;
    }

    SliceOfArrays log(byte[] bytes)
    {
        logs.add(bytes);
        return this;
    }

    /** The merged rows of these columns, in the engine's native values. */
    List<List<Object>> rows(HudiSliceMerger merger, List<SliceRequest.Column> columns)
            throws IOException
    {
        List<SliceRequest.Log> planned = new ArrayList<>();
        for (int i = 0; i < logs.size(); i++) {
            planned.add(new SliceRequest.Log("file:///t/p/.f-0_00%d.log.1_0-0-0".formatted(i + 1), logs.get(i).length));
        }
        Optional<String> path = base.isEmpty() ? Optional.empty() : Optional.of("file:///t/p/f-0_0-0-0_000.parquet");
        List<List<Object>> found = new ArrayList<>();
        try (MergedPages pages = merger.merge(new SliceRequest(properties, path, planned, columns, this))) {
            for (Page page = pages.next(); page != null; page = pages.next()) {
                onPage.run();
                for (int row = 0; row < page.getPositionCount(); row++) {
                    List<Object> values = new ArrayList<>();
                    for (int i = 0; i < columns.size(); i++) {
                        values.add(plain(TypeUtils.readNativeValue(columns.get(i).type(), page.getBlock(i), row)));
                    }
                    found.add(values);
                }
            }
        }
        return found;
    }

    private static Object plain(Object value)
    {
        return value instanceof Slice slice ? slice.toStringUtf8() : value;
    }

    @Override
    public void readLog(int log, long position, byte[] buffer, int offset, int length)
    {
        System.arraycopy(logs.get(log), (int) position, buffer, offset, length);
    }

    @Override
    public RowPages readBase(List<SliceRequest.Column> columns)
    {
        columnsOfBase.addAll(columns.stream().map(SliceRequest.Column::name).toList());
        List<Page> pages = new ArrayList<>();
        for (Object[] row : base) {
            Block[] blocks = new Block[columns.size()];
            for (int i = 0; i < blocks.length; i++) {
                Schema.Field field = AvroWriter.find(schema, columns.get(i).name());
                Type type = columns.get(i).type();
                BlockBuilder builder = type.createBlockBuilder(null, 1);
                AvroWriter.write(row[field.pos()], field.schema(), type, builder, field.name());
                blocks[i] = builder.build();
            }
            pages.add(new Page(1, blocks));
        }
        return new Pages(pages.iterator());
    }

    @Override
    public RowPages readInlineParquet(int log, long position, int length, List<SliceRequest.Column> columns)
    {
        throw new UnsupportedOperationException();
    }

    @Override
    public Optional<LogColumns> logColumns(String instant)
    {
        return Optional.ofNullable(older.get(instant));
    }

    private record Pages(Iterator<Page> pages)
            implements RowPages
    {
        @Override
        public Page next()
        {
            return pages.hasNext() ? pages.next() : null;
        }

        @Override
        public void close() {}
    }
}
