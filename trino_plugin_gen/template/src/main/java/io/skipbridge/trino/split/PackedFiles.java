package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Encodes the files of a split as bytes for the worker. First come the partitions and the readers, and whether files have etags; then for each file its
 * range, size, time, partition, reader, the part of its path that differs from the previous path, its etag's hash if any has one, and its logs.
 */
final class PackedFiles
{
    private PackedFiles() {}

    /** The encoding of no partition, no reader, no etag and no file. */
    static byte[] none()
    {
        return new byte[3 * Integer.BYTES + 1];
    }

    static byte[] pack(SplitColumns columns, int firstFile, int endFile)
    {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(64 + 48 * (endFile - firstFile));
        DataOutputStream output = new DataOutputStream(bytes);
        Map<Integer, Integer> ordinals = new LinkedHashMap<>();
        Map<ReaderSpec, Integer> readers = new LinkedHashMap<>();
        for (int file = firstFile; file < endFile; file++) {
            ordinals.putIfAbsent(columns.partitionOrdinal(file), ordinals.size());
            readers.putIfAbsent(columns.reader(file), readers.size());
        }
        try {
            output.writeInt(ordinals.size());
            for (int ordinal : ordinals.keySet()) {
                writePartition(output, columns.partition(ordinal));
            }
            output.writeInt(readers.size());
            for (ReaderSpec reader : readers.keySet()) {
                writeReader(output, reader);
            }
            output.writeBoolean(columns.hasEtags());
            output.writeInt(endFile - firstFile);
            byte[] previous = {};
            for (int file = firstFile; file < endFile; file++) {
                byte[] path = columns.path(file);
                int common = Arrays.mismatch(previous, path);
                common = common < 0 ? path.length : common;
                output.writeLong(columns.start(file));
                output.writeLong(columns.length(file));
                output.writeLong(columns.size(file));
                output.writeLong(columns.modified(file));
                output.writeInt(ordinals.get(columns.partitionOrdinal(file)));
                output.writeInt(readers.get(columns.reader(file)));
                output.writeInt(common);
                output.writeInt(path.length - common);
                output.write(path, common, path.length - common);
                previous = path;
                if (columns.hasEtags()) {
                    output.writeInt(columns.etagHash(file));
                }
                writeLogs(output, columns.logs(file));
            }
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    static List<PlannedFile> unpack(byte[] packed)
    {
        DataInputStream input = new DataInputStream(new ByteArrayInputStream(packed));
        try {
            PartitionEntry[] partitions = new PartitionEntry[input.readInt()];
            for (int i = 0; i < partitions.length; i++) {
                partitions[i] = readPartition(input);
            }
            ReaderSpec[] readers = new ReaderSpec[input.readInt()];
            for (int i = 0; i < readers.length; i++) {
                readers[i] = readReader(input);
            }
            boolean etags = input.readBoolean();
            int count = input.readInt();
            List<PlannedFile> files = new ArrayList<>(count);
            byte[] path = {};
            for (int i = 0; i < count; i++) {
                long start = input.readLong();
                long length = input.readLong();
                long size = input.readLong();
                long modified = input.readLong();
                PartitionEntry partition = partitions[input.readInt()];
                ReaderSpec reader = readers[input.readInt()];
                int common = input.readInt();
                byte[] rest = input.readNBytes(input.readInt());
                byte[] next = Arrays.copyOf(path, common + rest.length);
                System.arraycopy(rest, 0, next, common, rest.length);
                path = next;
                int etagHash = etags ? input.readInt() : 0;
                files.add(new PlannedFile(new String(path, StandardCharsets.UTF_8), start, length, size, modified, partition, reader, readLogs(input), etagHash));
            }
            return files;
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void writePartition(DataOutputStream output, PartitionEntry partition)
            throws IOException
    {
        writeText(output, partition.name());
        output.writeInt(partition.values().size());
        for (int i = 0; i < partition.values().size(); i++) {
            writeText(output, partition.values().get(i));
            output.writeBoolean(partition.nulls()[i]);
        }
    }

    private static PartitionEntry readPartition(DataInputStream input)
            throws IOException
    {
        String name = readText(input);
        int count = input.readInt();
        List<String> values = new ArrayList<>(count);
        boolean[] nulls = new boolean[count];
        for (int i = 0; i < count; i++) {
            values.add(readText(input));
            nulls[i] = input.readBoolean();
        }
        return new PartitionEntry(name, List.copyOf(values), nulls);
    }

    private static void writeReader(DataOutputStream output, ReaderSpec reader)
            throws IOException
    {
        writeText(output, reader.format());
        output.writeInt(reader.properties().size());
        for (Map.Entry<String, String> property : reader.properties().entrySet()) {
            writeText(output, property.getKey());
            writeText(output, property.getValue());
        }
        List<ReaderSpec.Column> columns = reader.columns().orElse(null);
        output.writeInt(columns == null ? -1 : columns.size());
        for (ReaderSpec.Column column : reader.columns().orElse(List.of())) {
            writeText(output, column.name());
            writeText(output, column.engineType());
        }
    }

    private static ReaderSpec readReader(DataInputStream input)
            throws IOException
    {
        String format = readText(input);
        int count = input.readInt();
        Map<String, String> properties = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            properties.put(readText(input), readText(input));
        }
        int width = input.readInt();
        List<ReaderSpec.Column> columns = new ArrayList<>();
        for (int i = 0; i < width; i++) {
            columns.add(new ReaderSpec.Column(readText(input), readText(input)));
        }
        return new ReaderSpec(format, properties, width < 0 ? Optional.empty() : Optional.of(columns));
    }

    private static void writeLogs(DataOutputStream output, List<LogFile> logs)
            throws IOException
    {
        output.writeInt(logs.size());
        for (LogFile log : logs) {
            writeText(output, log.path());
            output.writeLong(log.size());
            output.writeLong(log.modifiedMillis());
        }
    }

    private static List<LogFile> readLogs(DataInputStream input)
            throws IOException
    {
        int count = input.readInt();
        List<LogFile> logs = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            logs.add(new LogFile(readText(input), input.readLong(), input.readLong()));
        }
        return logs;
    }

    private static void writeText(DataOutputStream output, String text)
            throws IOException
    {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        output.writeInt(bytes.length);
        output.write(bytes);
    }

    private static String readText(DataInputStream input)
            throws IOException
    {
        return new String(input.readNBytes(input.readInt()), StandardCharsets.UTF_8);
    }
}
