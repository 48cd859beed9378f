package io.skipbridge.trino.hudi;

import io.trino.spi.Page;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;

/** A row of a page as an Avro record, whose values are converted when they are asked for. A row that a merge changed holds its values. */
final class PageRecord
        implements GenericRecord
{
    private final BaseColumns columns;
    private final Page page;
    private final int position;
    private Object[] changed;

    PageRecord(BaseColumns columns, Page page, int position)
    {
        this.columns = columns;
        this.page = page;
        this.position = position;
    }

    boolean isChanged()
    {
        return changed != null;
    }

    BaseColumns columns()
    {
        return columns;
    }

    Page page()
    {
        return page;
    }

    int position()
    {
        return position;
    }

    @Override
    public Schema getSchema()
    {
        return columns.schema();
    }

    @Override
    public Object get(int field)
    {
        return changed == null ? columns.value(page, position, field) : changed[field];
    }

    @Override
    public void put(int field, Object value)
    {
        if (changed == null) {
            Object[] values = new Object[columns.size()];
            for (int i = 0; i < values.length; i++) {
                values[i] = columns.value(page, position, i);
            }
            changed = values;
        }
        changed[field] = value;
    }

    @Override
    public Object get(String name)
    {
        Schema.Field field = getSchema().getField(name);
        return field == null ? null : get(field.pos());
    }

    @Override
    public void put(String name, Object value)
    {
        put(getSchema().getField(name).pos(), value);
    }
}
