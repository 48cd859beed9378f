package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceRequest;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.Utf8;
import org.apache.hudi.common.model.DeleteRecord;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Rows of which only a part is decoded at first are those that Avro reads, and merge to the same rows. */
class TestLogRows
{
    private static final Schema WRITTEN = SchemaBuilder.record("t_record").fields()
            .optionalString("key").optionalInt("i").requiredLong("l").optionalFloat("f").optionalDouble("d")
            .optionalBoolean("b").optionalBytes("bytes").requiredString("text")
            .name("fixed").type().unionOf().nullType().and().fixed("four").size(4).endUnion().nullDefault()
            .name("list").type().unionOf().nullType().and().array().items().nullable().intType().endUnion().nullDefault()
            .name("map").type().unionOf().nullType().and().map().values().stringType().endUnion().nullDefault()
            .name("nested").type().unionOf().nullType().and().record("inner").fields().optionalInt("x").endRecord().endUnion().nullDefault()
            .name("last").type().unionOf().intType().and().nullType().endUnion().noDefault()
            .endRecord();

    @Test
    void valuesAreThoseThatAvroReads()
            throws IOException
    {
        Random random = new Random(11);
        for (int round = 0; round < 300; round++) {
            List<Schema.Field> fields = new ArrayList<>();
            for (Schema.Field field : WRITTEN.getFields()) {
                if (random.nextInt(3) > 0) {
                    fields.add(new Schema.Field(field, field.schema()));
                }
            }
            fields.add(new Schema.Field("absent", Schema.createUnion(Schema.create(Schema.Type.NULL), Schema.create(Schema.Type.LONG)), null, Schema.Field.NULL_DEFAULT_VALUE));
            Collections.shuffle(fields, random);
            Schema required = Schema.createRecord("t_record", null, "other", false, fields);
            LogSchema schema = LogSchema.of(WRITTEN.toString(), required).orElseThrow();
            List<GenericRecord> records = new ArrayList<>();
            for (int i = 0; i < random.nextInt(5); i++) {
                records.add(record(random));
            }
            boolean[] merged = new boolean[fields.size()];
            for (int i = 0; i < merged.length; i++) {
                merged[i] = random.nextInt(4) == 0;
            }
            byte[] content = content(records);
            byte[] shifted = new byte[content.length + 7];
            System.arraycopy(content, 0, shifted, 3, content.length);
            LogRows rows = new LogRows(schema, shifted, 3, content.length, merged);
            for (GenericRecord record : records) {
                GenericRecord row = (GenericRecord) rows.next();
                GenericRecord expected = read(bytes(record), required);
                for (int field : shuffled(merged.length, random)) {
                    assertEquals(expected.get(field), row.get(field), required.getFields().get(field).name());
                }
            }
            assertTrue(!rows.hasNext());
        }
    }

    @Test
    void whatAvroWouldConvertIsLeftToAvro()
    {
        Schema wider = new Schema.Parser().parse(WRITTEN.toString().replace("\"l\",\"type\":\"long\"", "\"l\",\"type\":\"double\""));
        assertTrue(LogSchema.of(WRITTEN.toString(), wider).isEmpty());
        Schema other = SchemaBuilder.record("t_record").fields().name("absent").type().longType().longDefault(7).endRecord();
        assertTrue(LogSchema.of(WRITTEN.toString(), other).isEmpty());
        Schema lacking = SchemaBuilder.record("t_record").fields().requiredLong("absent").endRecord();
        assertTrue(LogSchema.of(WRITTEN.toString(), lacking).isEmpty());
    }

    @Test
    void aBlockThatEndsWithinARecordIsAnError()
            throws IOException
    {
        byte[] content = content(List.of(record(new Random(1)), record(new Random(2))));
        LogSchema schema = LogSchema.of(WRITTEN.toString(), WRITTEN).orElseThrow();
        for (int length = 8; length < content.length; length++) {
            LogRows rows = new LogRows(schema, Arrays.copyOf(content, length), 0, length, new boolean[WRITTEN.getFields().size()]);
            assertThrows(UncheckedIOException.class, () -> {
                rows.next();
                rows.next();
            });
        }
    }

    /** Hudi's own reading of blocks, which a slice gets whose logs are too large, is the law. */
    @Test
    void mergedRowsAreThoseOfHudisReading()
            throws IOException
    {
        Random random = new Random(5);
        Schema table = SchemaBuilder.record("t_record").namespace("hoodie.t").fields()
                .optionalString("_hoodie_commit_time").optionalString("_hoodie_commit_seqno").optionalString("_hoodie_record_key")
                .optionalString("_hoodie_partition_path").optionalString("_hoodie_file_name")
                .optionalString("id").optionalLong("ts").optionalString("name").optionalBoolean("_hoodie_is_deleted").optionalString("rest")
                .endRecord();
        Schema narrow = new Schema.Parser().parse(table.toString().replace("{\"name\":\"rest\",\"type\":[\"null\",\"string\"],\"default\":null}", "{\"name\":\"more\",\"type\":[\"null\",\"int\"],\"default\":null}"));
        Schema retyped = new Schema.Parser().parse(table.toString().replace("\"long\"", "\"int\""));
        List<SliceRequest.Column> columns = List.of(
                new SliceRequest.Column("id", VARCHAR), new SliceRequest.Column("rest", VARCHAR), new SliceRequest.Column("ts", BIGINT), new SliceRequest.Column("name", VARCHAR));
        for (int round = 0; round < 60; round++) {
            SliceOfArrays slice = new SliceOfArrays(table, random.nextBoolean() ? "EVENT_TIME_ORDERING" : "COMMIT_TIME_ORDERING");
            for (int i = 0; i < random.nextInt(12); i++) {
                Object[] row = row(table, random, "k" + i, "base");
                row[8] = false;
                slice.base(row);
            }
            long size = 0;
            int instant = 0;
            for (int i = 0; i < 1 + random.nextInt(3); i++) {
                Schema schema = List.of(table, table, narrow, retyped).get(random.nextInt(4));
                LogWriter log = new LogWriter(schema);
                for (int block = 0; block < 1 + random.nextInt(3); block++) {
                    String time = "%03d".formatted(++instant);
                    if (random.nextInt(4) == 0) {
                        log.deletes(time, DeleteRecord.create("k" + random.nextInt(12), "", random.nextBoolean() ? (Comparable<?>) 0 : (Comparable<?>) (long) random.nextInt(9)));
                    }
                    else {
                        Object[][] rows = new Object[random.nextInt(5)][];
                        for (int k = 0; k < rows.length; k++) {
                            rows[k] = row(schema, random, "k" + random.nextInt(14), time);
                        }
                        log.rows(time, rows);
                    }
                }
                slice.log(log.bytes());
                size += log.bytes().length;
            }
            assertEquals(sorted(slice.rows(new HudiSliceMerger(size), columns)), sorted(slice.rows(new HudiSliceMerger(1 << 30), columns)), "round " + round);
        }
    }

    private static Object[] row(Schema schema, Random random, String key, String name)
    {
        long ts = random.nextInt(9);
        Object time = schema.getField("ts").schema().getTypes().get(1).getType() == Schema.Type.INT ? (Object) (int) ts : (Object) ts;
        Object last = schema.getField("more") == null ? (Object) ("rest" + random.nextInt(99)) : (Object) random.nextInt(99);
        return new Object[] {"000", "000_0", key, "p", "f", key, time, name, random.nextInt(8) == 0, random.nextInt(5) == 0 ? null : last};
    }

    private static List<String> sorted(List<List<Object>> rows)
    {
        return rows.stream().map(List::toString).sorted().toList();
    }

    private static List<Integer> shuffled(int count, Random random)
    {
        List<Integer> places = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            places.add(i);
        }
        Collections.shuffle(places, random);
        return places;
    }

    private static GenericRecord record(Random random)
    {
        GenericData.Record record = new GenericData.Record(WRITTEN);
        for (Schema.Field field : WRITTEN.getFields()) {
            boolean nullable = field.schema().isNullable();
            record.put(field.pos(), nullable && random.nextInt(3) == 0 ? null : value(field.name(), random));
        }
        return record;
    }

    private static Object value(String name, Random random)
    {
        Schema field = WRITTEN.getField(name).schema();
        return switch (name) {
            case "i", "last" -> random.nextInt();
            case "l" -> random.nextLong();
            case "f" -> random.nextFloat();
            case "d" -> random.nextDouble();
            case "b" -> random.nextBoolean();
            case "bytes" -> ByteBuffer.wrap(text(random).getBytes());
            case "fixed" -> new GenericData.Fixed(field.getTypes().get(1), new byte[] {1, (byte) random.nextInt(), 3, 4});
            case "list" -> new GenericData.Array<>(field.getTypes().get(1), Arrays.asList(1, null, random.nextInt()));
            case "map" -> Map.of(new Utf8(text(random)), new Utf8(text(random)));
            case "nested" -> {
                GenericData.Record inner = new GenericData.Record(field.getTypes().get(1));
                inner.put(0, random.nextBoolean() ? null : random.nextInt());
                yield inner;
            }
            default -> new Utf8(text(random));
        };
    }

    private static String text(Random random)
    {
        return "ä".repeat(random.nextInt(3)) + random.nextInt(1000);
    }

    private static byte[] bytes(GenericRecord record)
            throws IOException
    {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
        new GenericDatumWriter<GenericRecord>(WRITTEN).write(record, encoder);
        return bytes.toByteArray();
    }

    private static GenericRecord read(byte[] bytes, Schema required)
            throws IOException
    {
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(bytes, null);
        return new GenericDatumReader<GenericRecord>(WRITTEN, required).read(null, decoder);
    }

    private static byte[] content(List<GenericRecord> records)
            throws IOException
    {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream output = new DataOutputStream(bytes);
        output.writeInt(3);
        output.writeInt(records.size());
        for (GenericRecord record : records) {
            byte[] one = bytes(record);
            output.writeInt(one.length);
            output.write(one);
        }
        return bytes.toByteArray();
    }
}
