package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.hudi.common.model.DeleteRecord;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;

import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Merging by position; the cases are those of tests/unit/hudi/test_merge_by_position.py. */
class TestPositions
{
    private static final String BASE_AT = "000";
    private static final Schema SCHEMA = SchemaBuilder.record("t_record").namespace("hoodie.t").fields()
            .optionalString("_hoodie_commit_time").optionalString("_hoodie_commit_seqno").optionalString("_hoodie_record_key")
            .optionalString("_hoodie_partition_path").optionalString("_hoodie_file_name")
            .optionalString("id").optionalLong("ts").optionalString("name").endRecord();

    @Test
    void ofTwoRowsWithAKeyTheOneAtThePositionChanges()
            throws IOException
    {
        byte[] first = log().at(BASE_AT, 1L).rows("001", row("a", "x")).bytes();
        assertEquals(List.of("one", "x"), rows(table().base(row("a", "one"), row("a", "two")).log(first)));
        byte[] second = log().at(BASE_AT, 0L).deletes("002", DeleteRecord.create("a", "")).bytes();
        assertEquals(List.of("x"), rows(table().base(row("a", "one"), row("a", "two")).log(first).log(second)));
    }

    @Test
    void oneBlockWithoutPositionsMakesKeysDecide()
            throws IOException
    {
        byte[] log = log().at(BASE_AT, 1L).rows("001", row("a", "x")).rows("002", row("b", "y")).bytes();
        assertEquals(List.of("two", "x", "y"), rows(table().base(row("a", "one"), row("a", "two"), row("b", "b")).log(log)));
    }

    @Test
    void twoChangedRowsOfAKeyAreNotToldApartByKey()
            throws IOException
    {
        SliceOfArrays slice = table();
        for (int i = 0; i < 20; i++) {
            slice.base(row("k" + i % 17, "b" + i));
        }
        LogWriter log = log().at(BASE_AT, 0L, 17L).rows("001", row("k0", "x"), row("k0", "y"));
        refused("several rows with the key 'k0'", slice.log(log.rows("002", row("k9", "z")).bytes()));
    }

    @Test
    void positionsInAnotherBaseFileDoNotCount()
            throws IOException
    {
        byte[] log = log().at("00", 7L).rows("001", row("a", "x")).bytes();
        assertEquals(List.of("two", "x"), rows(table().base(row("a", "one"), row("a", "two")).log(log)));
    }

    @Test
    void aRowThatIsNotAtItsPositionIsAnError()
            throws IOException
    {
        for (long place : new long[] {1, 2, 1L << 33}) {
            for (boolean mixed : new boolean[] {false, true}) {
                LogWriter log = log().at(BASE_AT, place).rows("001", row("a", "x"));
                refused("at position " + place, table().base(row("a", "one"), row("b", "two")).log((mixed ? log.rows("002", row("b", "y")) : log).bytes()));
            }
        }
    }

    @Test
    void aDeletionThatMeetsNoRowIsAnError()
            throws IOException
    {
        refused("holds 'a'", table().base(row("a", "one"), row("b", "two")).log(log().at(BASE_AT, 0L).deletes("001", DeleteRecord.create("key:a", "")).bytes()));
    }

    @Test
    void asManyPositionsAsRecords()
            throws IOException
    {
        refused("fewer records than positions", table().base(row("a", "one")).log(log().at(BASE_AT, 0L, 1L).rows("001", row("a", "x")).bytes()));
        refused("more records than positions", table().base(row("a", "one")).log(log().at(BASE_AT, 0L).rows("001", row("a", "x"), row("b", "y")).bytes()));
    }

    @Test
    void aDeletionMayNameTheFieldOfItsKey()
            throws IOException
    {
        for (String generator : List.of("org.apache.hudi.keygen.ComplexKeyGenerator", "COMPLEX", "")) {
            for (String key : List.of("2", "id:2")) {
                for (boolean positional : new boolean[] {false, true}) {
                    LogWriter log = positional ? log().at(BASE_AT, 1L) : log();
                    SliceOfArrays slice = virtual(generator).base(row("1", "one"), row("2", "two")).log(log.deletes("001", DeleteRecord.create(key, "")).bytes());
                    assertEquals(List.of("one"), rows(slice), generator + key + positional);
                }
            }
        }
        for (String generator : List.of("a.SimpleKeyGenerator", "SIMPLE", "CUSTOM_AVRO", "b.NonpartitionedKeyGenerator")) {
            SliceOfArrays slice = virtual(generator).base(row("id:2", "one"), row("2", "two")).log(log().deletes("001", DeleteRecord.create("id:2", "")).bytes());
            assertEquals(List.of("two"), rows(slice), generator);
        }
        byte[] log = log().deletes("001", DeleteRecord.create("id:2", "")).bytes();
        refused("not sure which rows", virtual("COMPLEX").base(row("id:2", "one"), row("2", "two")).log(log));
        byte[] both = log().rows("001", row("id:2", "x")).deletes("002", DeleteRecord.create("id:2", "")).bytes();
        refused("not sure which rows", virtual("COMPLEX").base(row("3", "one"), row("2", "two")).log(both));
    }

    @Test
    void positionsChangeWhatATableByPositionHas()
            throws IOException
    {
        for (int seed = 0; seed < 30; seed++) {
            Random random = new Random(seed);
            int count = 1 + random.nextInt(300);
            SliceOfArrays slice = table();
            List<String> keys = new ArrayList<>();
            List<String> want = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                keys.add("k" + random.nextInt(count));
                want.add("b" + i);
                slice.base(row(keys.get(i), "b" + i));
            }
            for (String instant : List.of("001", "002", "003")) {
                TreeSet<Long> chosen = new TreeSet<>();
                for (int i = 0; i <= random.nextInt(count); i++) {
                    chosen.add((long) random.nextInt(count));
                }
                boolean deleted = random.nextInt(3) == 0;
                LogWriter log = log().at(BASE_AT, chosen.toArray(Long[]::new));
                if (deleted) {
                    log.deletes(instant, chosen.stream().map(i -> DeleteRecord.create(keys.get(i.intValue()), "")).toArray(DeleteRecord[]::new));
                }
                else {
                    log.rows(instant, chosen.stream().map(i -> row(keys.get(i.intValue()), instant + "-" + i)).toArray(Object[][]::new));
                }
                chosen.forEach(i -> want.set(i.intValue(), deleted ? null : instant + "-" + i));
                slice.log(log.bytes());
            }
            assertEquals(want.stream().filter(each -> each != null).sorted().toList(), rows(slice), "seed " + seed);
        }
    }

    private static void refused(String what, SliceOfArrays slice)
    {
        Throwable error = assertThrows(RuntimeException.class, () -> rows(slice));
        while (!(error instanceof UnsupportedSlice) && error.getCause() != null) {
            error = error.getCause();
        }
        assertTrue(error instanceof UnsupportedSlice && error.getMessage().contains(what), error.toString());
    }

    private static SliceOfArrays table()
    {
        return new SliceOfArrays(SCHEMA, "COMMIT_TIME_ORDERING");
    }

    private static SliceOfArrays virtual(String generator)
    {
        return table().set("hoodie.populate.meta.fields", "false").set("hoodie.table.keygenerator.class", generator);
    }

    private static LogWriter log()
    {
        return new LogWriter(SCHEMA);
    }

    private static Object[] row(String id, String name)
    {
        return new Object[] {"000", "000_0", id, "p", "f", id, 1L, name};
    }

    private static List<String> rows(SliceOfArrays slice)
            throws IOException
    {
        return slice.rows(new HudiSliceMerger(), List.of(new SliceRequest.Column("name", VARCHAR))).stream().map(List::getFirst).map(String.class::cast).sorted().toList();
    }
}
