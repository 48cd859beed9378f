package io.skipbridge.hive;

import io.skipbridge.hive.segments.FactRows;
import io.skipbridge.hive.segments.FactScan;
import io.skipbridge.hive.segments.SegmentRow;
import io.skipbridge.hive.wire.PlannedFile;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapred.RecordReader;

import java.io.IOException;

/** Reads the files of a split one after another. */
final class SegmentRecordReader
        implements RecordReader<NullWritable, SegmentRow>
{
    private final SegmentSplit split;
    private final FactScan scan;
    private int opened;
    private long done;
    private FactRows rows;

    SegmentRecordReader(SegmentSplit split, FactScan scan)
    {
        this.split = split;
        this.scan = scan;
    }

    @Override
    public boolean next(NullWritable key, SegmentRow row)
            throws IOException
    {
        while (true) {
            if (rows == null) {
                if (opened == split.files().size()) {
                    return false;
                }
                rows = scan.open(split.files().get(opened++));
            }
            Object[] values = new Object[split.columns().size()];
            if (rows.next(values)) {
                row.set(values);
                return true;
            }
            close();
        }
    }

    @Override
    public NullWritable createKey()
    {
        return NullWritable.get();
    }

    @Override
    public SegmentRow createValue()
    {
        return new SegmentRow();
    }

    @Override
    public long getPos()
    {
        return done;
    }

    @Override
    public float getProgress()
    {
        return split.getLength() == 0 ? 1 : Math.min(1, (float) done / split.getLength());
    }

    @Override
    public void close()
            throws IOException
    {
        if (rows != null) {
            PlannedFile file = split.files().get(opened - 1);
            done += file.length();
            FactRows open = rows;
            rows = null;
            open.close();
        }
    }
}
