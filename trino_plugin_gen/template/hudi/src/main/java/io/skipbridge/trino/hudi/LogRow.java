package io.skipbridge.trino.hudi;

import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;

import java.io.IOException;
import java.io.UncheckedIOException;

/** A row of a log as an Avro record. What merging asks for is there; the other values are decoded if they are asked for, which most versions of a row never are. */
final class LogRow
        implements GenericRecord
{
    private final LogRows rows;
    private final int offset;
    private final int length;
    private final Object[] values;
    private boolean whole;

    LogRow(LogRows rows, int offset, int length, Object[] values)
    {
        this.rows = rows;
        this.offset = offset;
        this.length = length;
        this.values = values;
    }

    @Override
    public Schema getSchema()
    {
        return rows.schema().required();
    }

    @Override
    public Object get(int field)
    {
        if (!whole && !rows.merged()[field]) {
            decode();
        }
        return values[field];
    }

    @Override
    public void put(int field, Object value)
    {
        decode();
        values[field] = value;
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

    private void decode()
    {
        if (whole) {
            return;
        }
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(rows.content(), offset, length, null);
        try {
            rows.schema().read(decoder, values);
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        whole = true;
    }
}
