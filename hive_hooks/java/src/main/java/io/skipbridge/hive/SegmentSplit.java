package io.skipbridge.hive;

import io.skipbridge.hive.segments.Columns;
import io.skipbridge.hive.wire.PlannedFile;
import io.skipbridge.hive.wire.ReaderSpec;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.FileSplit;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Files of a table of segments that one task reads. Its path is the table's own directory: Hive finds the table of a split by it. Its length is that
 * of the files.
 */
public class SegmentSplit
        extends FileSplit
{
    private String table;
    private Columns columns;
    private List<PlannedFile> files;

    /** For Hadoop, which then calls readFields. */
    public SegmentSplit()
    {
        super((Path) null, 0, 0, new String[0]);
        files = Collections.emptyList();
    }

    SegmentSplit(Path location, String table, Columns columns, List<PlannedFile> files)
    {
        super(location, 0, files.stream().mapToLong(PlannedFile::length).sum(), new String[0]);
        this.table = table;
        this.columns = columns;
        this.files = files;
    }

    String table()
    {
        return table;
    }

    Columns columns()
    {
        return columns;
    }

    List<PlannedFile> files()
    {
        return files;
    }

    @Override
    public void write(DataOutput out)
            throws IOException
    {
        super.write(out);
        Text.writeString(out, table);
        Text.writeString(out, columns.names());
        Text.writeString(out, columns.types());
        Map<ReaderSpec, Integer> readers = new LinkedHashMap<>();
        files.forEach(file -> readers.putIfAbsent(file.reader(), readers.size()));
        out.writeInt(readers.size());
        for (ReaderSpec reader : readers.keySet()) {
            Text.writeString(out, reader.format());
            out.writeInt(reader.properties().size());
            for (Map.Entry<String, String> property : reader.properties().entrySet()) {
                Text.writeString(out, property.getKey());
                Text.writeString(out, property.getValue());
            }
        }
        out.writeInt(files.size());
        for (PlannedFile file : files) {
            Text.writeString(out, file.path());
            out.writeLong(file.start());
            out.writeLong(file.length());
            out.writeLong(file.size());
            out.writeLong(file.modified());
            out.writeInt(readers.get(file.reader()));
            Text.writeString(out, file.partition());
        }
    }

    @Override
    public void readFields(DataInput in)
            throws IOException
    {
        super.readFields(in);
        table = Text.readString(in);
        columns = new Columns(Text.readString(in), Text.readString(in));
        List<ReaderSpec> readers = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            String format = Text.readString(in);
            Map<String, String> properties = new HashMap<>();
            for (int more = in.readInt(); more > 0; more--) {
                properties.put(Text.readString(in), Text.readString(in));
            }
            readers.add(new ReaderSpec(format, properties));
        }
        files = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            files.add(new PlannedFile(
                    Text.readString(in),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    readers.get(in.readInt()),
                    Text.readString(in)));
        }
    }
}
