package io.skipbridge.hive;

import io.skipbridge.hive.predicate.ExpressionWriter;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPEqual;
import org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe;
import org.apache.hadoop.hive.serde2.objectinspector.PrimitiveObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.io.Text;
import org.junit.jupiter.api.Test;

import java.time.ZoneId;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.TimeZone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestSkippedTimes
{
    @Test
    void concernTypesAndZones()
    {
        assertEquals(Arrays.asList(false, false, false), concern("UTC"));
        assertEquals(Arrays.asList(true, false, false), concern("America/Los_Angeles"));
        // There was no 30 December 2011.
        assertEquals(Arrays.asList(true, true, false), concern("Pacific/Apia"));
    }

    /** Either Hive shows the very text, or the filter is known to see another value. */
    @Test
    void coverWhatTheSerDeShows()
            throws Exception
    {
        TimeZone before = TimeZone.getDefault();
        try {
            for (String zone : new String[] {"UTC", "America/Los_Angeles", "Pacific/Apia"}) {
                TimeZone.setDefault(TimeZone.getTimeZone(zone));
                for (String time : new String[] {"2024-03-10 02:30:00", "2011-12-30 10:00:00"}) {
                    assertTrue(shown(time).startsWith(time) || SkippedTimes.concern(document("timestamp")), zone + ": " + time);
                }
            }
        }
        finally {
            TimeZone.setDefault(before);
        }
    }

    private static List<Boolean> concern(String zone)
    {
        return Arrays.asList(
                SkippedTimes.concern(document("timestamp"), ZoneId.of(zone).getRules()),
                SkippedTimes.concern(document("date"), ZoneId.of(zone).getRules()),
                SkippedTimes.concern(document("int"), ZoneId.of(zone).getRules()));
    }

    private static String document(String type)
    {
        ExprNodeDesc column = new ExprNodeColumnDesc(TypeInfoUtils.getTypeInfoFromTypeString(type), "c", "t", false);
        return ExpressionWriter.document(Collections.singletonList(
                new ExprNodeGenericFuncDesc(TypeInfoFactory.booleanTypeInfo, new GenericUDFOPEqual(), Arrays.asList(column, column))));
    }

    private static String shown(String text)
            throws Exception
    {
        Properties table = new Properties();
        table.setProperty("columns", "c");
        table.setProperty("columns.types", "timestamp");
        LazySimpleSerDe serde = new LazySimpleSerDe();
        serde.initialize(new Configuration(false), table, null);
        StructObjectInspector row = (StructObjectInspector) serde.getObjectInspector();
        StructField field = row.getAllStructFieldRefs().get(0);
        Object value = row.getStructFieldData(serde.deserialize(new Text(text)), field);
        return String.valueOf(((PrimitiveObjectInspector) field.getFieldObjectInspector()).getPrimitiveJavaObject(value));
    }
}
