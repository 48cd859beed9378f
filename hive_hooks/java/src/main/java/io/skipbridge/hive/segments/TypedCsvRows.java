package io.skipbridge.hive.segments;

import io.skipbridge.client.CsvFields;
import io.skipbridge.client.TypedCsvProperties;
import io.skipbridge.hive.wire.PlannedFile;
import io.skipbridge.hive.wire.ReaderSpec;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters.Converter;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapred.TextInputFormat;

import java.io.IOException;
import java.util.List;

/** CSV with types: each field is cast from its text as skipbridge's Trino connector casts it. Columns are found by the names of the fields. */
final class TypedCsvRows
        implements FactRows
{
    private final Records records;
    private final CsvFields parser;
    private final String nulls;
    private final boolean fails;
    private final List<Integer> wanted;
    private final Columns columns;
    private final int[] places;
    private final TextCast[] casts;
    private final Converter[] converters;

    TypedCsvRows(FactScan scan, PlannedFile file, Path path)
            throws IOException
    {
        TypedCsvProperties properties = new TypedCsvProperties(file.reader().properties());
        List<String> fields = properties.fields();
        parser = properties.parser();
        nulls = properties.nulls();
        fails = properties.fails();
        wanted = scan.wanted();
        columns = scan.columns();
        places = new int[wanted.size()];
        casts = new TextCast[wanted.size()];
        converters = new Converter[wanted.size()];
        for (int i = 0; i < places.length; i++) {
            int column = wanted.get(i);
            places[i] = fields.indexOf(columns.name(column));
            casts[i] = TextCast.to(columns.type(column), file.reader().properties(), file.path(), columns.name(column));
            ObjectInspector inspector = columns.inspector(column);
            converters[i] = ObjectInspectorConverters.getConverter(casts[i].inspector(), inspector);
        }
        records = new Records(file, path, TextInputFormat.class.getName(), scan.settings("line", "string", "0", "line"), scan.reporter());
    }

    /** Whether the planner asks for casts. */
    static boolean reads(ReaderSpec reader)
    {
        return TypedCsvProperties.areOf(reader.properties());
    }

    @Override
    public boolean next(Object[] values)
            throws IOException
    {
        Writable line = records.next();
        if (line == null) {
            return false;
        }
        if (places.length == 0) {
            return true;
        }
        List<String> fields = parser.of(line.toString());
        for (int i = 0; i < places.length; i++) {
            String text = places[i] < 0 || places[i] >= fields.size() ? null : fields.get(places[i]);
            values[wanted.get(i)] = text == null || text.equals(nulls) ? null : value(i, text);
        }
        return true;
    }

    private Object value(int i, String text)
            throws IOException
    {
        Object value;
        try {
            value = casts[i].of(text);
        }
        catch (TextCast.OutOfHivesRange e) {
            throw records.broken(e);
        }
        catch (RuntimeException e) {
            if (fails) {
                int column = wanted.get(i);
                throw records.broken(new IOException(TypedCsvProperties.problem(text, columns.name(column), columns.type(column)), e));
            }
            return null;
        }
        return converters[i].convert(value);
    }

    @Override
    public void close()
            throws IOException
    {
        records.close();
    }
}
