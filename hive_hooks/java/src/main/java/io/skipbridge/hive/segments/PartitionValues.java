package io.skipbridge.hive.segments;

import io.skipbridge.hive.wire.PlannedFile;
import org.apache.hadoop.hive.common.FileUtils;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The values of a file's partition columns. They are the table's last columns, and no file holds them. */
final class PartitionValues
{
    private static final String NULL = "__HIVE_DEFAULT_PARTITION__";

    private final Columns ofFile;
    private final List<Integer> wantedOfFile = new ArrayList<>();
    private final Map<Integer, Object> values = new HashMap<>();

    PartitionValues(Columns columns, List<Integer> wanted, PlannedFile file)
            throws IOException
    {
        Map<String, String> texts = texts(file.partition());
        int count = columns.size();
        while (count > 0 && texts.containsKey(columns.name(count - 1))) {
            count--;
        }
        ofFile = columns.first(count);
        for (int column : wanted) {
            String name = columns.name(column);
            if (column < count) {
                if (texts.containsKey(name)) {
                    throw new IOException("TABLE_RECORD_OUTDATED: the partition column " + name + " stands before others -> skipbridge segment refresh of the table");
                }
                wantedOfFile.add(column);
                continue;
            }
            String text = texts.get(name);
            TextCast cast = TextCast.to(columns.type(column), Collections.emptyMap(), file.path(), name);
            Object value = text == null ? null : ObjectInspectorConverters.getConverter(cast.inspector(), columns.inspector(column)).convert(cast.of(text));
            values.put(column, value);
        }
    }

    /** Unescaped texts by column; null is NULL. */
    private static Map<String, String> texts(String partition)
    {
        Map<String, String> found = new HashMap<>();
        for (String level : partition.split("/")) {
            int equals = level.indexOf('=');
            String text = FileUtils.unescapePathName(level.substring(equals + 1));
            found.put(FileUtils.unescapePathName(level.substring(0, Math.max(equals, 0))), text.equals(NULL) ? null : text);
        }
        return found;
    }

    Columns columnsOfFile()
    {
        return ofFile;
    }

    List<Integer> wantedOfFile()
    {
        return wantedOfFile;
    }

    /** The rows of the file with these values. */
    FactRows beside(FactRows rows)
    {
        return new FactRows()
        {
            @Override
            public boolean next(Object[] row)
                    throws IOException
            {
                if (!rows.next(row)) {
                    return false;
                }
                values.forEach((column, value) -> row[column] = value);
                return true;
            }

            @Override
            public void close()
                    throws IOException
            {
                rows.close();
            }
        };
    }
}
