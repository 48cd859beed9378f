package io.skipbridge.hive;

import io.skipbridge.hive.segments.Columns;
import io.skipbridge.hive.segments.SegmentRow;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.io.Writable;

import java.util.Properties;

/** The SerDe of tables of segments: their input format gives rows that are read already, by the SerDe of each file. */
public class SegmentSerDe
        extends ColumnsSerDe
{
    private static final String REFUSAL = "OPERATION_BLOCKED: a table of segments is not written"
            + " -> write files anywhere, then skipbridge segment add TABLE PATH, or ALTER TABLE ... ADD SEGMENT";

    private ObjectInspector inspector;

    @Override
    void initialize(Properties properties)
    {
        inspector = new Columns(properties.getProperty("columns", ""), properties.getProperty("columns.types", "")).inspector();
    }

    @Override
    public ObjectInspector getObjectInspector()
    {
        return inspector;
    }

    /** Asked for by writers alone, before their first row: Spark then fails though there is none. */
    @Override
    public Class<? extends Writable> getSerializedClass()
    {
        throw new UnsupportedOperationException(REFUSAL);
    }

    @Override
    public Object deserialize(Writable row)
    {
        return ((SegmentRow) row).values();
    }

    @Override
    public Writable serialize(Object row, ObjectInspector inspector)
            throws SerDeException
    {
        throw new SerDeException(REFUSAL);
    }
}
