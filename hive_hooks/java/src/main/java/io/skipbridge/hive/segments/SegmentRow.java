package io.skipbridge.hive.segments;

import org.apache.hadoop.io.Writable;

import java.io.DataInput;
import java.io.DataOutput;

/** One row of a table of segments: values of Hive's writable types by the table's columns. It stays within a task. */
public final class SegmentRow
        implements Writable
{
    private Object[] values = {};

    public Object[] values()
    {
        return values;
    }

    public void set(Object[] values)
    {
        this.values = values;
    }

    @Override
    public void write(DataOutput out)
    {
        throw new UnsupportedOperationException("rows of segments are not sent");
    }

    @Override
    public void readFields(DataInput in)
    {
        throw new UnsupportedOperationException("rows of segments are not sent");
    }
}
