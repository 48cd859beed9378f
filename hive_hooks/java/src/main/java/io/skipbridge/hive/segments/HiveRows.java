package io.skipbridge.hive.segments;

import io.skipbridge.hive.wire.PlannedFile;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters.Converter;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.util.ReflectionUtils;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;

/** The rows of a file as Hive's own input format and SerDe of its format read them, columns by their names. */
final class HiveRows
        implements FactRows
{
    private static final String QL = "org.apache.hadoop.hive.ql.io.";
    private static final String SERDE = "serialization.lib";
    private static final String INPUT_FORMAT = "file.inputformat";
    /** Reads JSON as the one that tables name, which many installations do not have. */
    private static final String JSON = "org.apache.hadoop.hive.serde2.JsonSerDe";
    private static final Map<String, List<String>> CLASSES = new HashMap<>();

    static {
        CLASSES.put("parquet", Arrays.asList(QL + "parquet.MapredParquetInputFormat", QL + "parquet.serde.ParquetHiveSerDe"));
        CLASSES.put("orc", Arrays.asList(QL + "orc.OrcInputFormat", QL + "orc.OrcSerde"));
    }

    private final Records records;
    private final AbstractSerDe serde;
    private final StructObjectInspector inspector;
    private final List<Integer> wanted;
    private final StructField[] fields;
    private final Converter[] converters;

    HiveRows(FactScan scan, PlannedFile file, Path path)
            throws IOException
    {
        Map<String, String> properties = file.reader().properties();
        List<String> classes = CLASSES.getOrDefault(file.reader().format(), Arrays.asList(properties.get(INPUT_FORMAT), properties.get(SERDE)));
        if (classes.contains(null)) {
            throw new IOException("UNSUPPORTED_FORMAT: " + file.path() + " is of the format " + file.reader().format() + ", which Hive does not read in tables of segments -> read the table with Trino");
        }
        // Fields of text have no names: they are those of the columns at the planner's places.
        boolean byPlace = file.reader().format().equals("text");
        Columns all = scan.columns();
        Columns own = byPlace ? new Columns(properties.get("columns"), properties.get("columns.types")) : all;
        wanted = scan.wanted();
        List<Integer> places = new ArrayList<>();
        for (int column : wanted) {
            places.add(placeOf(own, all.name(column)));
        }
        JobConf job = scan.settings(
                own.names(),
                own.types(),
                places.stream().map(String::valueOf).collect(Collectors.joining(",")),
                wanted.stream().map(all::name).collect(Collectors.joining(",")));
        Properties told = new Properties();
        told.putAll(properties);
        told.setProperty("columns", own.names());
        told.setProperty("columns.types", own.types());
        try {
            serde = serde(file, classes.get(1), job);
            SerDes.initialize(serde, job, told);
            inspector = (StructObjectInspector) serde.getObjectInspector();
        }
        catch (SerDeException | RuntimeException e) {
            throw new IOException(file.path() + " cannot be read as " + file.reader().format() + ": " + e, e);
        }
        fields = new StructField[wanted.size()];
        converters = new Converter[wanted.size()];
        for (int i = 0; i < fields.length; i++) {
            fields[i] = inspector.getStructFieldRef(all.name(wanted.get(i)));
            converters[i] = ObjectInspectorConverters.getConverter(fields[i].getFieldObjectInspector(), all.inspector(wanted.get(i)));
        }
        records = new Records(file, path, classes.get(0), job, scan.reporter());
    }

    private static int placeOf(Columns columns, String name)
            throws IOException
    {
        for (int i = 0; i < columns.size(); i++) {
            if (columns.name(i).equals(name)) {
                return i;
            }
        }
        throw new IOException("the planner's columns " + columns.names() + " lack " + name + " -> run the query again");
    }

    private static AbstractSerDe serde(PlannedFile file, String name, JobConf job)
            throws IOException
    {
        List<String> names = file.reader().format().equals("json") ? Arrays.asList(JSON, name) : Arrays.asList(name);
        ClassNotFoundException missing = null;
        for (String each : names) {
            try {
                return (AbstractSerDe) ReflectionUtils.newInstance(job.getClassByName(each), job);
            }
            catch (ClassNotFoundException e) {
                missing = e;
            }
        }
        throw Records.unsupported(file, "SerDe", name, missing);
    }

    @Override
    public boolean next(Object[] values)
            throws IOException
    {
        Writable record = records.next();
        if (record == null) {
            return false;
        }
        try {
            Object row = fields.length == 0 ? null : serde.deserialize(record);
            for (int i = 0; i < fields.length; i++) {
                Object value = row == null ? null : inspector.getStructFieldData(row, fields[i]);
                values[wanted.get(i)] = value == null ? null : converters[i].convert(value);
            }
            return true;
        }
        catch (SerDeException | RuntimeException e) {
            throw records.broken(e);
        }
    }

    @Override
    public void close()
            throws IOException
    {
        records.close();
    }
}
