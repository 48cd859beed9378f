package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceRequest;
import io.trino.spi.Page;
import io.trino.spi.type.Type;
import org.apache.avro.Schema;

import java.util.ArrayList;
import java.util.List;

/** The columns that are read of a Parquet file: one for each field of an Avro schema, of the type that holds all values of the field. */
final class BaseColumns
{
    private final Schema schema;
    private final List<Schema> values = new ArrayList<>();
    private final List<SliceRequest.Column> columns = new ArrayList<>();

    BaseColumns(Schema schema)
    {
        this.schema = schema;
        for (Schema.Field field : schema.getFields()) {
            columns.add(new SliceRequest.Column(AvroTypes.lower(field.name()), AvroTypes.typeOf(field.schema(), field.name())));
            values.add(AvroTypes.nonNull(field.schema(), field.name()));
        }
    }

    Schema schema()
    {
        return schema;
    }

    List<SliceRequest.Column> columns()
    {
        return columns;
    }

    int size()
    {
        return columns.size();
    }

    Type type(int field)
    {
        return columns.get(field).type();
    }

    Object value(Page page, int position, int field)
    {
        return AvroReader.read(values.get(field), columns.get(field).type(), page.getBlock(field), position);
    }
}
