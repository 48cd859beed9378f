package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceRequest;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.Type;
import org.apache.avro.Schema;
import org.apache.avro.generic.IndexedRecord;

import java.util.List;

/** Writes records to pages. Values of rows of a base file are copied from block to block where their types are equal. */
final class RowWriter
{
    private final List<SliceRequest.Column> columns;
    private final Schema[] schemas;
    private final Schema.Field[] fields;

    RowWriter(List<SliceRequest.Column> columns)
    {
        this.columns = columns;
        this.schemas = new Schema[columns.size()];
        this.fields = new Schema.Field[columns.size()];
    }

    Page write(List<IndexedRecord> rows)
    {
        Block[] blocks = new Block[columns.size()];
        for (int i = 0; i < blocks.length; i++) {
            BlockBuilder builder = columns.get(i).type().createBlockBuilder(null, rows.size());
            for (IndexedRecord row : rows) {
                append(row, i, builder);
            }
            blocks[i] = builder.build();
        }
        return new Page(rows.size(), blocks);
    }

    private void append(IndexedRecord row, int column, BlockBuilder builder)
    {
        Schema.Field field = field(row.getSchema(), column);
        Type type = columns.get(column).type();
        if (field == null) {
            builder.appendNull();
        }
        else if (row instanceof PageRecord base && !base.isChanged() && base.columns().type(field.pos()).equals(type)) {
            Block block = base.page().getBlock(field.pos());
            builder.append(block.getUnderlyingValueBlock(), block.getUnderlyingValuePosition(base.position()));
        }
        else {
            AvroWriter.write(row.get(field.pos()), field.schema(), type, builder, columns.get(column).name());
        }
    }

    /** The field of a column. Consecutive records mostly have the same schema. */
    private Schema.Field field(Schema schema, int column)
    {
        if (schemas[column] != schema) {
            schemas[column] = schema;
            fields[column] = AvroWriter.find(schema, columns.get(column).name());
        }
        return fields[column];
    }
}
