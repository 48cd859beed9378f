package io.skipbridge.hive.segments;

import io.skipbridge.hive.wire.PlannedFile;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.util.ReflectionUtils;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;

/** The records of a file without the lines of its header and footer. */
final class Records
        implements Closeable
{
    private static final List<String> COMPRESSED = Arrays.asList(".bz2", ".deflate", ".gz", ".lz4", ".lzo", ".lzo_deflate", ".snappy", ".zst");

    private final PlannedFile file;
    private final RecordReader<Object, Writable> reader;
    private final Object key;
    private final Writable value;
    private final int footer;
    private final ArrayDeque<Text> held = new ArrayDeque<>();
    private long read;

    Records(PlannedFile file, Path path, String inputFormat, JobConf job, Reporter reporter)
            throws IOException
    {
        this.file = file;
        requireCodec(file, path, job);
        InputFormat<Object, Writable> format = format(file, inputFormat, job);
        long length = Math.min(file.length(), file.size() - file.start());
        try {
            this.reader = format.getRecordReader(new FileSplit(path, file.start(), length, new String[0]), job, reporter);
        }
        catch (IOException | RuntimeException e) {
            throw broken("at its start", e);
        }
        this.key = reader.createKey();
        this.value = reader.createValue();
        this.footer = lines("skip.footer.line.count");
        int header = lines("skip.header.line.count");
        if (file.start() == 0) {
            for (int i = 0; i < header; i++) {
                if (!read(value)) {
                    break;
                }
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static InputFormat<Object, Writable> format(PlannedFile file, String name, JobConf job)
            throws IOException
    {
        try {
            return (InputFormat<Object, Writable>) ReflectionUtils.newInstance(job.getClassByName(name), job);
        }
        catch (ClassNotFoundException e) {
            throw unsupported(file, "input format", name, e);
        }
    }

    static IOException unsupported(PlannedFile file, String what, String name, Throwable cause)
    {
        return new IOException(String.format("UNSUPPORTED_FORMAT: %s is read by the %s %s, which this Hive does not have -> add its jar to Hive, or read the table with Trino",
                file.path(), what, name), cause);
    }

    /** Hadoop reads the compressed bytes themselves where it does not know the codec. */
    private static void requireCodec(PlannedFile file, Path path, JobConf job)
            throws IOException
    {
        boolean compressed = COMPRESSED.stream().anyMatch(path.getName()::endsWith);
        if (compressed && !isBinary(file) && new CompressionCodecFactory(job).getCodec(path) == null) {
            throw new IOException("UNSUPPORTED_FORMAT: " + file.path() + " is compressed by a codec that this Hive does not have -> add it to io.compression.codecs");
        }
    }

    private static boolean isBinary(PlannedFile file)
    {
        return Arrays.asList("parquet", "orc", "avro").contains(file.reader().format());
    }

    private int lines(String property)
            throws IOException
    {
        String text = file.reader().properties().getOrDefault(property, "0");
        try {
            return Integer.parseInt(text);
        }
        catch (NumberFormatException e) {
            throw new IOException(file.path() + ": " + property + " is '" + text + "', no number of lines", e);
        }
    }

    /** The next record, or null; the same object may come again with another content. */
    Writable next()
            throws IOException
    {
        while (read(value)) {
            if (footer == 0) {
                read++;
                return value;
            }
            held.add(new Text((Text) value));
            if (held.size() > footer) {
                read++;
                return held.remove();
            }
        }
        return null;
    }

    private boolean read(Writable into)
            throws IOException
    {
        try {
            return reader.next(key, into);
        }
        catch (IOException | RuntimeException e) {
            throw broken("after " + place(), e);
        }
    }

    /** Says which record of which file is broken. */
    IOException broken(Exception cause)
    {
        return broken(place(), cause);
    }

    private IOException broken(String where, Exception cause)
    {
        return new IOException(String.format("FILE_CORRUPT: %s, %s: cannot be read as %s: %s", file.path(), where, file.reader().format(), cause), cause);
    }

    private String place()
    {
        return file.start() == 0 ? "record " + read : "record " + read + " behind byte " + file.start();
    }

    @Override
    public void close()
            throws IOException
    {
        reader.close();
    }
}
