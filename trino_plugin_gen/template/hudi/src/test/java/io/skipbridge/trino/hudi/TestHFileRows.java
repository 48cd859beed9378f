package io.skipbridge.trino.hudi;

import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.hudi.io.hfile.HFileContext;
import org.apache.hudi.io.hfile.HFileWriter;
import org.apache.hudi.io.hfile.HFileWriterImpl;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

final class TestHFileRows
{
    private static final Schema SCHEMA = SchemaBuilder.record("r").fields().requiredString("key").requiredLong("v").endRecord();
    private static final int ROWS = 5;
    /** The trailer's field of the number of entries: a varint of number 7. */
    private static final byte ENTRIES = 7 << 3;

    @Test
    void theEndComesAfterTheRowsThatTheTrailerStates()
            throws IOException
    {
        assertEquals(ROWS, count(file(ROWS)));
        assertEquals(0, count(file(0)));
        for (int stated : new int[] {ROWS - 1, ROWS + 1}) {
            byte[] file = file(ROWS);
            int changed = 0;
            for (int i = file.length - 4096; i < file.length - 1; i++) {
                if (i >= 0 && file[i] == ENTRIES && file[i + 1] == ROWS) {
                    file[i + 1] = (byte) stated;
                    changed++;
                }
            }
            assertEquals(1, changed);
            UncheckedIOException error = assertThrows(UncheckedIOException.class, () -> count(file));
            assertTrue(error.getMessage().contains("other rows than its trailer states"));
        }
    }

    private static int count(byte[] file)
            throws IOException
    {
        int found = 0;
        try (HFileRows rows = new HFileRows(file, 0, file.length, SCHEMA, SCHEMA)) {
            while (rows.hasNext()) {
                rows.next();
                found++;
            }
        }
        return found;
    }

    private static byte[] file(int rows)
            throws IOException
    {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (HFileWriter writer = new HFileWriterImpl(HFileContext.builder().build(), bytes)) {
            for (int i = 0; i < rows; i++) {
                GenericRecord row = new GenericData.Record(SCHEMA);
                row.put("key", "");
                row.put("v", (long) i);
                ByteArrayOutputStream value = new ByteArrayOutputStream();
                BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(value, null);
                new GenericDatumWriter<GenericRecord>(SCHEMA).write(row, encoder);
                encoder.flush();
                writer.append("k" + i, value.toByteArray());
            }
        }
        return bytes.toByteArray();
    }
}
