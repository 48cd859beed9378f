package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceRequest;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.util.Utf8;
import org.apache.hudi.common.model.DeleteRecord;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.sql.Date;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Slices merge to the same rows however their logs are kept: read by Hudi, as bytes, or as bytes and then spilled. */
class TestLogMerges
{
    private static final int ROUNDS = 4;
    private static final List<SliceRequest.Column> COLUMNS = List.of(
            new SliceRequest.Column("id", VARCHAR), new SliceRequest.Column("rest", VARCHAR), new SliceRequest.Column("name", VARCHAR));

    enum Ordering
    {
        LONG, INT, STRING, DOUBLE, FLOAT, BYTES_DECIMAL, FIXED_DECIMAL, MILLIS, MICROS, DATE, NONE, TWO;

        Schema schema()
        {
            return switch (this) {
                case LONG, NONE, TWO -> Schema.create(Schema.Type.LONG);
                case INT -> Schema.create(Schema.Type.INT);
                case STRING -> Schema.create(Schema.Type.STRING);
                case DOUBLE -> Schema.create(Schema.Type.DOUBLE);
                case FLOAT -> Schema.create(Schema.Type.FLOAT);
                case BYTES_DECIMAL -> LogicalTypes.decimal(9, 1).addToSchema(Schema.create(Schema.Type.BYTES));
                case FIXED_DECIMAL -> LogicalTypes.decimal(9, 1).addToSchema(Schema.createFixed("fixed", null, "hoodie.t.t_record.ts", 4));
                case MILLIS -> LogicalTypes.timestampMillis().addToSchema(Schema.create(Schema.Type.LONG));
                case MICROS -> LogicalTypes.timestampMicros().addToSchema(Schema.create(Schema.Type.LONG));
                case DATE -> LogicalTypes.date().addToSchema(Schema.create(Schema.Type.INT));
            };
        }

        Object value(int number)
        {
            return switch (this) {
                case LONG, NONE, TWO -> (long) number;
                case INT, DATE -> number;
                case STRING -> new Utf8(String.valueOf(number));
                case DOUBLE -> number / 2.0;
                case FLOAT -> number / 2.0f;
                case BYTES_DECIMAL -> ByteBuffer.wrap(new byte[] {(byte) (number - 5)});
                case FIXED_DECIMAL -> new GenericData.Fixed(schema(), ByteBuffer.allocate(4).putInt(number - 5).array());
                case MILLIS -> number * 1_000L;
                case MICROS -> number * 1_000_000L;
            };
        }

        Comparable<?> ofDelete(int number)
        {
            return switch (this) {
                case BYTES_DECIMAL, FIXED_DECIMAL -> BigDecimal.valueOf(number - 5, 1);
                case MILLIS, MICROS -> Timestamp.from(Instant.ofEpochSecond(number));
                case DATE -> Date.valueOf(LocalDate.ofEpochDay(number));
                case STRING -> String.valueOf(number);
                default -> (Comparable<?>) value(number);
            };
        }
    }

    @Test
    void rowsDoNotDependOnHowLogsAreKept()
            throws IOException
    {
        int spilled = 0;
        for (Ordering ordering : Ordering.values()) {
            Random random = new Random(ordering.ordinal());
            for (int round = 0; round < ROUNDS; round++) {
                spilled += check(ordering, random, round == 0) ? 1 : 0;
            }
        }
        assertTrue(spilled >= Ordering.values().length / 2, spilled + " slices were spilled");
    }

    /** Whether rows were spilled whose bytes were kept. */
    private static boolean check(Ordering ordering, Random random, boolean large)
            throws IOException
    {
        Schema table = SchemaBuilder.record("t_record").namespace("hoodie.t").fields()
                .optionalString("_hoodie_commit_time").optionalString("_hoodie_commit_seqno").optionalString("_hoodie_record_key")
                .optionalString("_hoodie_partition_path").optionalString("_hoodie_file_name").optionalString("_hoodie_operation")
                .optionalString("id").name("ts").type(Schema.createUnion(Schema.create(Schema.Type.NULL), ordering.schema())).withDefault(null)
                .optionalString("name").optionalString("op").optionalInt("second").optionalString("rest")
                .name("list").type().unionOf().nullType().and().array().items().nullable().stringType().endUnion().nullDefault()
                .endRecord();
        Schema narrow = new Schema.Parser().parse(table.toString().replace("{\"name\":\"rest\",\"type\":[\"null\",\"string\"],\"default\":null},", ""));
        SliceOfArrays slice = new SliceOfArrays(table, ordering != Ordering.NONE && random.nextInt(3) > 0 ? "EVENT_TIME_ORDERING" : "COMMIT_TIME_ORDERING");
        if (ordering == Ordering.NONE || ordering == Ordering.TWO) {
            slice.set("hoodie.table.ordering.fields", ordering == Ordering.TWO ? "ts,second" : "");
        }
        if (random.nextBoolean()) {
            slice.set("hoodie.record.merge.property.hoodie.payload.delete.field", "op").set("hoodie.record.merge.property.hoodie.payload.delete.marker", "D");
        }
        if (random.nextInt(4) == 0) {
            slice.set("hoodie.populate.meta.fields", "false").set("hoodie.table.keygenerator.class", "org.apache.hudi.keygen.SimpleKeyGenerator");
        }
        for (int i = 0; i < random.nextInt(12); i++) {
            slice.base(row(table, ordering, random, i, "base"));
        }
        long size = 0;
        int instant = 0;
        for (int i = 0; i < 1 + random.nextInt(3); i++) {
            Schema schema = List.of(table, table, narrow).get(random.nextInt(3));
            LogWriter log = new LogWriter(schema);
            for (int block = 0; block < 1 + random.nextInt(3); block++) {
                // some are out of order, or later than the query
                String time = "%03d".formatted(random.nextInt(4) == 0 ? random.nextInt(12) : ++instant);
                switch (random.nextInt(8)) {
                    case 0 -> log.rollback(time, "%03d".formatted(random.nextInt(instant + 1)));
                    case 1, 2 -> {
                        Comparable<?> at = random.nextBoolean() || ordering == Ordering.TWO ? (Comparable<?>) 0 : ordering.ofDelete(random.nextInt(9));
                        log.deletes(time, DeleteRecord.create("k" + random.nextInt(12), "", at));
                    }
                    default -> {
                        Object[][] rows = new Object[random.nextInt(large ? 500 : 5)][];
                        for (int k = 0; k < rows.length; k++) {
                            rows[k] = row(schema, ordering, random, random.nextInt(large ? 3_000 : 14), time);
                        }
                        log.rows(time, rows);
                    }
                }
            }
            byte[] bytes = random.nextInt(8) == 0 ? Arrays.copyOf(log.bytes(), random.nextInt(log.bytes().length)) : log.bytes();
            slice.log(bytes);
            size += bytes.length;
        }
        List<String> expected = rows(slice, size);
        assertEquals(expected, rows(slice, 1 << 30), ordering.name());
        Set<Path> spilled = new HashSet<>();
        slice.onPage = () -> spilled.addAll(SpillDirectory.existing());
        assertEquals(expected, rows(slice, 2 * size), ordering + ", spilled");
        return !spilled.isEmpty();
    }

    private static List<String> rows(SliceOfArrays slice, long memory)
            throws IOException
    {
        return slice.rows(new HudiSliceMerger(memory), COLUMNS).stream().map(List::toString).sorted().toList();
    }

    private static Object[] row(Schema schema, Ordering ordering, Random random, int key, String name)
    {
        List<Object> values = new ArrayList<>();
        for (Schema.Field field : schema.getFields()) {
            values.add(switch (field.name()) {
                case "_hoodie_record_key", "id" -> "k" + key;
                case "ts" -> ordering.value(random.nextInt(9));
                case "name" -> name;
                case "_hoodie_operation" -> random.nextInt(8) == 0 ? "D" : random.nextBoolean() ? "I" : null;
                case "op" -> random.nextInt(8) == 0 ? "D" : "U";
                case "second" -> random.nextInt(4);
                case "list" -> random.nextBoolean() ? null : List.of("a", "b" + random.nextInt(9));
                case "rest" -> random.nextInt(5) == 0 ? null : "rest" + random.nextInt(99);
                default -> "000";
            });
        }
        return values.toArray();
    }
}
