package io.skipbridge.trino.read.text;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.storage.PlannedInputFile;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.Page;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.type.BigintType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Decimals;
import io.trino.spi.type.IntegerType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.zip.Deflater;
import java.util.zip.GZIPOutputStream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

final class TestLineFormat
{
    private static final String TEXT = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe";
    private static final String CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde";

    /** The law: each line is read once, wherever a file is cut. */
    @Test
    void everyCutReadsEachLineOnce()
            throws IOException
    {
        Random random = new Random(5);
        for (int round = 0; round < 60; round++) {
            StringBuilder text = new StringBuilder(round % 7 == 0 ? "\uFEFF" : "");
            int lines = random.nextInt(12);
            for (int line = 0; line < lines; line++) {
                text.append("x".repeat(random.nextInt(4))).append(line).append(List.of("\n", "\r\n", "\r", "\n\n").get(random.nextInt(4)));
            }
            if (random.nextBoolean()) {
                text.append("last");
            }
            byte[] bytes = text.toString().getBytes(StandardCharsets.UTF_8);
            Map<String, String> properties = new HashMap<>(properties(TEXT, "a"));
            properties.put("skip.header.line.count", Integer.toString(random.nextInt(2)));
            List<String> whole = read(bytes, 0, bytes.length, properties, VarcharType.VARCHAR);
            for (int cut = LineFormat.FIRST_CUT; cut < bytes.length; cut++) {
                List<String> pieces = new ArrayList<>(read(bytes, 0, cut, properties, VarcharType.VARCHAR));
                int second = cut + random.nextInt(bytes.length - cut);
                if (second > cut) {
                    pieces.addAll(read(bytes, cut, second - cut, properties, VarcharType.VARCHAR));
                }
                pieces.addAll(read(bytes, second, bytes.length - second, properties, VarcharType.VARCHAR));
                assertEquals(whole, pieces, "cut at %d and %d: %s".formatted(cut, second, text));
            }
        }
    }

    @Test
    void aCutInAByteOrderMarkIsRefused()
    {
        byte[] bytes = "\uFEFFa\nb\n".getBytes(StandardCharsets.UTF_8);
        assertThrows(TrinoException.class, () -> read(bytes, 2, 5, properties(TEXT, "a"), VarcharType.VARCHAR));
    }

    @Test
    void fieldsAreFoundByNameAndCast()
            throws IOException
    {
        Map<String, String> properties = new HashMap<>(properties(CSV, "a,b"));
        properties.put("skipbridge.cast", "try");
        properties.put("skipbridge.csv.fields", "other,c1,c0");
        byte[] bytes = "x,7,one\ny,no,two\nz, 8 \n".getBytes(StandardCharsets.UTF_8);
        assertEquals(List.of("one 7 null", "two null null", "null 8 null"), read(bytes, 0, bytes.length, properties, VarcharType.VARCHAR, IntegerType.INTEGER, BigintType.BIGINT));
    }

    @Test
    void aBadValueIsNamedWithItsRecord()
    {
        Map<String, String> properties = new HashMap<>(properties(CSV, "c0"));
        properties.put("skipbridge.cast", "fail");
        properties.put("skipbridge.csv.fields", "c0");
        byte[] bytes = "1\n2\n3x\n".getBytes(StandardCharsets.UTF_8);
        TrinoException e = assertThrows(TrinoException.class, () -> read(bytes, 0, bytes.length, properties, IntegerType.INTEGER));
        assertTrue(e.getMessage().contains("file:///t/a.csv, record 3: "), e.getMessage());
        assertTrue(e.getMessage().contains("'3x' of the column c0"), e.getMessage());
    }

    /** Java's reader of gzip takes an IOException at the head of a member for the end of the file. */
    @Test
    void storageThatFailsBetweenMembersOfGzipIsAnError()
            throws IOException
    {
        byte[] second = gzip("b\n".getBytes(StandardCharsets.UTF_8), Deflater.DEFAULT_COMPRESSION);
        int length = PlannedInputFile.BUFFER - 5;
        byte[] line = new byte[length];
        Arrays.fill(line, (byte) 'a');
        line[line.length - 1] = '\n';
        byte[] first = gzip(line, Deflater.NO_COMPRESSION);
        line = Arrays.copyOfRange(line, first.length - length, line.length);
        first = gzip(line, Deflater.NO_COMPRESSION);
        assertEquals(length, first.length);
        byte[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        ReadableFile broken = new ReadableFile()
        {
            @Override
            public long size()
            {
                return both.length;
            }

            @Override
            public void readFully(long position, byte[] buffer, int offset, int length)
                    throws IOException
            {
                if (position + length > PlannedInputFile.BUFFER) {
                    throw new IOException("503");
                }
                System.arraycopy(both, (int) position, buffer, offset, length);
            }

            @Override
            public void close() {}
        };
        assertEquals(2, read("file:///t/a.gz", new Bytes(both), 0, both.length, properties(TEXT, "a"), VarcharType.VARCHAR).size());
        TrinoException e = assertThrows(TrinoException.class, () -> read("file:///t/a.gz", broken, 0, both.length, properties(TEXT, "a"), VarcharType.VARCHAR));
        assertEquals(BridgeErrorCode.FILE_UNREADABLE.toErrorCode(), e.getErrorCode());
    }

    private static byte[] gzip(byte[] bytes, int level)
            throws IOException
    {
        ByteArrayOutputStream compressed = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(compressed)
        {
            {
                def.setLevel(level);
            }
        }) {
            gzip.write(bytes);
        }
        return compressed.toByteArray();
    }

    @Test
    void hugeExponentsCostNothing()
            throws IOException
    {
        Map<String, String> properties = new HashMap<>(properties(CSV, "c0"));
        properties.put("skipbridge.cast", "try");
        properties.put("skipbridge.csv.fields", "c0");
        byte[] bytes = "1e999999999\n1e-999999999\n0e999999999\n1.005\n".getBytes(StandardCharsets.UTF_8);
        assertEquals(List.of("null", "0.00", "0.00", "1.01"), read(bytes, 0, bytes.length, properties, DecimalType.createDecimalType(10, 2)));
    }

    private static Map<String, String> properties(String serde, String columns)
    {
        return Map.of("serialization.lib", serde, "file.inputformat", "org.apache.hadoop.mapred.TextInputFormat", "columns", columns);
    }

    private static List<String> read(byte[] bytes, long start, long length, Map<String, String> properties, Type... types)
            throws IOException
    {
        return read("file:///t/a.csv", new Bytes(bytes), start, length, properties, types);
    }

    private static List<String> read(String path, ReadableFile bytes, long start, long length, Map<String, String> properties, Type... types)
            throws IOException
    {
        List<BridgeColumnHandle> columns = new ArrayList<>();
        for (int i = 0; i < types.length; i++) {
            String name = properties.get("columns").equals("a") ? "a" : "c" + i;
            columns.add(new BridgeColumnHandle(name, types[i], ColumnKind.DATA, i));
        }
        ReaderSpec reader = new ReaderSpec("csv", properties, Optional.empty());
        PlannedFile planned = new PlannedFile(path, start, length, bytes.size(), -1, PartitionEntry.NONE, reader, List.of());
        List<String> rows = new ArrayList<>();
        try (FileReader found = new LineFormat("CSV", false, null).open(columns, planned, bytes)) {
            for (SourcePage page = found.next(); page != null; page = found.next()) {
                Page all = page.getPage();
                for (int row = 0; row < all.getPositionCount(); row++) {
                    List<String> values = new ArrayList<>();
                    for (int i = 0; i < types.length; i++) {
                        int channel = found.channelOf(i);
                        values.add(channel < 0 ? "null" : text(types[i], all.getBlock(channel), row));
                    }
                    rows.add(String.join(" ", values));
                }
            }
        }
        return rows;
    }

    private static String text(Type type, Block block, int row)
    {
        if (block.isNull(row)) {
            return "null";
        }
        return switch (type) {
            case VarcharType varchar -> varchar.getSlice(block, row).toStringUtf8();
            case DecimalType decimal -> Decimals.toString(decimal.getLong(block, row), decimal.getScale());
            default -> String.valueOf(type.getLong(block, row));
        };
    }

    private record Bytes(byte[] bytes)
            implements ReadableFile
    {
        @Override
        public long size()
        {
            return bytes.length;
        }

        @Override
        public void readFully(long position, byte[] buffer, int offset, int length)
        {
            System.arraycopy(bytes, (int) position, buffer, offset, length);
        }

        @Override
        public void close() {}
    }
}
