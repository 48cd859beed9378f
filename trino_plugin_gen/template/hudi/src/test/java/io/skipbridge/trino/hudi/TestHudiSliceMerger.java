package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.LogColumns;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.skipbridge.trino.read.merge.StoredColumns;
import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.trino.spi.block.Block;
import io.trino.spi.type.ArrayType;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.table.log.block.HoodieLogBlock.HoodieLogBlockType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MILLIS;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestHudiSliceMerger
{
    private static final Schema SCHEMA = SchemaBuilder.record("t_record").namespace("hoodie.t").fields()
            .optionalString("_hoodie_commit_time")
            .optionalString("_hoodie_commit_seqno")
            .optionalString("_hoodie_record_key")
            .optionalString("_hoodie_partition_path")
            .optionalString("_hoodie_file_name")
            .optionalString("id")
            .optionalLong("ts")
            .optionalString("name")
            .optionalString("rest")
            .endRecord();
    private static final SliceRequest.Column ID = new SliceRequest.Column("id", VARCHAR);
    private static final SliceRequest.Column NAME = new SliceRequest.Column("name", VARCHAR);

    @Test
    void theLatestEventWinsAndTiesAreTheLogs()
            throws IOException
    {
        SliceOfArrays slice = byEventTime()
                .base(row("a", 5, "base"), row("b", 5, "base"), row("c", 5, "base"), row("d", 5, "base"))
                .log(log().rows("001", row("a", 6, "newer"), row("b", 4, "older"), row("c", 5, "tie"), row("e", 1, "insert")).bytes());
        assertEquals(List.of(List.of("a", "newer"), List.of("b", "base"), List.of("c", "tie"), List.of("d", "base"), List.of("e", "insert")), rows(slice));
    }

    @Test
    void theLatestCommitWinsWhateverItsEventTime()
            throws IOException
    {
        SliceOfArrays slice = new SliceOfArrays(SCHEMA, "COMMIT_TIME_ORDERING")
                .base(row("a", 5, "base"), row("b", 5, "base"))
                .log(log().rows("001", row("a", 9, "first"), row("b", 1, "older")).bytes())
                .log(log().rows("002", row("a", 2, "second")).bytes());
        assertEquals(List.of(List.of("a", "second"), List.of("b", "older")), rows(slice));
    }

    @Test
    void deletesCountByTheirEventTimeOrByTheirCommit()
            throws IOException
    {
        SliceOfArrays slice = byEventTime()
                .base(row("a", 5, "base"), row("b", 5, "base"), row("c", 5, "base"), row("d", 5, "base"))
                .log(log()
                        .rows("001", row("d", 9, "log"))
                        .deletes("002", DeleteRecord.create("a", "", 6L), DeleteRecord.create("b", "", 4L), DeleteRecord.create("c", "", 0), DeleteRecord.create("d", "", 0))
                        .bytes());
        assertEquals(List.of(List.of("b", "base")), rows(slice));
    }

    @Test
    void aSliceOfLogsAloneHasTheirRows()
            throws IOException
    {
        SliceOfArrays slice = byEventTime()
                .log(log().rows("001", row("a", 1, "one"), row("b", 1, "one")).bytes())
                .log(log().rows("002", row("a", 2, "two")).deletes("002", DeleteRecord.create("b", "", 2L)).bytes());
        assertEquals(List.of(List.of("a", "two")), rows(slice));
        assertEquals(List.of(), slice.columnsOfBase);
    }

    @Test
    void blocksThatAreCutOffOrRolledBackOrLaterAreNotRead()
            throws IOException
    {
        byte[] whole = log().rows("001", row("a", 2, "first")).rows("002", row("a", 3, "second")).bytes();
        SliceOfArrays cut = byEventTime().base(row("a", 1, "base")).log(Arrays.copyOf(whole, whole.length - 5));
        assertEquals(List.of(List.of("a", "first")), rows(cut));

        SliceOfArrays back = byEventTime()
                .base(row("a", 1, "base"))
                .log(log().rows("001", row("a", 2, "first")).rows("002", row("a", 3, "second")).rollback("003", "002").bytes());
        assertEquals(List.of(List.of("a", "first")), rows(back));

        SliceOfArrays earlier = byEventTime().base(row("a", 1, "base")).log(whole).set("skipbridge.hudi.instant", "001");
        assertEquals(List.of(List.of("a", "first")), rows(earlier));
    }

    @Test
    void damageIsNotTakenForABlockThatIsCutOff()
            throws IOException
    {
        byte[] first = log().rows("001", row("a", 2, "first")).bytes();
        byte[] whole = log().rows("001", row("a", 2, "first")).deletes("002", DeleteRecord.create("a", "", 3L)).rows("003", row("b", 4, "b")).bytes();
        int last = whole.length - Long.BYTES;
        for (int from : new int[] {0, 6, first.length - Long.BYTES, first.length, first.length + 6, last}) {
            for (int bit = 0; bit < 8 * (from == 0 || from == first.length ? 6 : Long.BYTES); bit++) {
                byte[] bent = whole.clone();
                bent[from + bit / 8] ^= (byte) (1 << bit % 8);
                SliceOfArrays slice = byEventTime().base(row("a", 1, "base")).log(bent);
                try {
                    // Hudi takes no notice of the upper half of a length
                    assertEquals(List.of(List.of("b", "b")), rows(slice), "bit %d of byte %d".formatted(bit % 8, from + bit / 8));
                }
                catch (RuntimeException e) {
                    // refused
                }
            }
        }
    }

    @Test
    void olderTablesLeaveOutBlocksOfInstantsThatAreNotCompleted()
            throws IOException
    {
        byte[] log = log().rows("002", row("a", 2, "done")).rows("003", row("b", 3, "failed")).rows("004", row("c", 3, "pending")).bytes();
        SliceOfArrays slice = byEventTime()
                .base(row("a", 1, "base"))
                .log(log)
                .set("hoodie.table.version", "6")
                .set("hoodie.timeline.layout.version", "1")
                .set("hoodie.table.precombine.field", "ts")
                .set("hoodie.compaction.payload.class", "org.apache.hudi.common.model.DefaultHoodieRecordPayload")
                .set("skipbridge.hudi.completed", "001,002,005")
                .set("skipbridge.hudi.inflight", "004");
        assertEquals(List.of(List.of("a", "done")), rows(slice));
    }

    @Test
    void ofTheBaseOnlyTheColumnsOfTheQueryAndOfTheMergeAreRead()
            throws IOException
    {
        byte[] log = log().rows("001", row("a", 6, "newer")).bytes();
        SliceOfArrays slice = byEventTime().base(row("a", 5, "base")).log(log);
        slice.rows(new HudiSliceMerger(), List.of(NAME));
        assertEquals(List.of("_hoodie_record_key", "name", "ts"), slice.columnsOfBase.stream().sorted().toList());

        SliceOfArrays none = byEventTime().base(row("a", 5, "base"), row("b", 5, "base")).log(log);
        assertEquals(List.of(List.of(), List.of()), none.rows(new HudiSliceMerger(), List.of()));
        assertTrue(!none.columnsOfBase.contains("rest"));
    }

    @Test
    void rowsThatDoNotFitInMemoryAreSpilledAndRead()
            throws IOException
    {
        LogWriter log = log();
        Object[][] rows = new Object[500][];
        for (int i = 0; i < rows.length; i++) {
            rows[i] = row("k%03d".formatted(i), i, "v" + i);
        }
        SliceOfArrays slice = byEventTime().base(row("k000", 1_000, "base")).log(log.rows("001", rows).bytes());
        List<Path> spilled = new ArrayList<>();
        slice.onPage = () -> spilled.addAll(SpillDirectory.existing());
        List<List<Object>> found = slice.rows(new HudiSliceMerger(4_096), List.of(ID, NAME));
        assertEquals(500, found.size());
        assertTrue(found.contains(List.of("k000", "base")) && found.contains(List.of("k499", "v499")));
        assertEquals(1, spilled.size());
        assertEquals(List.of(), SpillDirectory.existing(), "it is removed with the slice");
    }

    @Test
    void anOrderingFieldThatBecameWiderIsComparedAsTheTableHasIt()
            throws IOException
    {
        Schema old = new Schema.Parser().parse(SCHEMA.toString().replace("\"long\"", "\"int\""));
        Object[] older = row("a", 7, "seven");
        older[6] = 7;
        Object[] other = row("b", 1, "one");
        other[6] = 1;
        SliceOfArrays slice = byEventTime()
                .base(row("a", 5, "base"), row("b", 5, "base"), row("c", 5, "base"))
                .log(new LogWriter(old).rows("001", older, other).deletes("001", DeleteRecord.create("c", "", 4)).bytes());
        assertEquals(List.of(List.of("a", "seven"), List.of("b", "base"), List.of("c", "base")), rows(slice));
    }

    @Test
    void blocksOlderThanARenameAreReadByTheirOwnNames()
            throws IOException
    {
        Schema old = new Schema.Parser().parse(SCHEMA.toString().replace("\"name\",\"type\":[\"null\",\"string\"]", "\"title\",\"type\":[\"null\",\"string\"]"));
        assertTrue(old.getField("title") != null && old.getField("name") == null);
        Object[][] base = {row("a", 1, "base"), row("b", 1, "base"), row("c", 1, "base"), row("d", 1, "base")};
        byte[] log = new LogWriter(old).rows("001", row("a", 2, "older"), row("b", 2, "older")).deletes("001", DeleteRecord.create("d", "", 2L)).bytes();
        byte[] newer = log().rows("002", row("b", 3, "newer")).bytes();
        SliceOfArrays slice = byEventTime().base(base).log(log).log(newer);
        slice.older.put("001", new Renamed("title", "name", "title"));
        assertEquals(List.of(List.of("a", "older"), List.of("b", "newer"), List.of("c", "base")), rows(slice));

        // a block that is not as the history says, and a rename of a field that rows are merged by
        for (Renamed refused : List.of(new Renamed("other", "name", "title"), new Renamed("title", "ts", "title"))) {
            SliceOfArrays other = byEventTime().base(base).log(log);
            other.older.put("001", refused);
            assertOlder("", () -> rows(other));
        }
    }

    /** Hudi's reader repairs blocks that call milliseconds microseconds, by the names of their fields. */
    @Test
    void olderBlocksWithTimesOfAnotherUnitAreRefused()
            throws IOException
    {
        String text = "\"name\":\"name\",\"type\":[\"null\",\"string\"]";
        String time = "\"name\":\"name\",\"type\":[\"null\",{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}]";
        Schema table = new Schema.Parser().parse(SCHEMA.toString().replace(text, time));
        Object[] row = row("a", 2, null);
        row[7] = 1_700_000_000_123L;
        for (String unit : List.of("millis", "micros")) {
            Schema old = new Schema.Parser().parse(table.toString().replace("\"name\":\"name\"", "\"name\":\"title\"").replace("millis", unit));
            assertTrue(old.getField("title") != null && old.getField("name") == null);
            SliceOfArrays slice = new SliceOfArrays(table, "EVENT_TIME_ORDERING").log(new LogWriter(old).rows("001", row).bytes());
            slice.older.put("001", new Renamed("title", "name", "title"));
            List<SliceRequest.Column> columns = List.of(ID, new SliceRequest.Column("name", TIMESTAMP_MILLIS));
            if (unit.equals("millis")) {
                assertEquals(List.of(List.of("a", 1_700_000_000_123_000L)), slice.rows(new HudiSliceMerger(), columns));
            }
            else {
                assertOlder("unit", () -> slice.rows(new HudiSliceMerger(), columns));
            }
        }
    }

    /** As in Parquet files: also the fields that rows are merged by, however the block is read. */
    @Test
    void namesOfBlocksMayDifferInCase()
            throws IOException
    {
        Schema other = new Schema.Parser().parse(SCHEMA.toString().replace("\"ts\"", "\"TS\"").replace("\"name\":\"name\"", "\"name\":\"Name\""));
        assertTrue(other.getField("TS") != null && other.getField("Name") != null);
        for (long memory : new long[] {0, 1 << 30}) {
            SliceOfArrays slice = byEventTime()
                    .base(row("a", 5, "base"), row("b", 5, "base"))
                    .log(new LogWriter(other).rows("001", row("a", 6, "newer"), row("b", 4, "older"), row("c", 1, "insert")).bytes())
                    .log(log().rows("002", row("c", 2, "last")).bytes());
            List<List<Object>> found = slice.rows(new HudiSliceMerger(memory), List.of(ID, NAME));
            assertEquals(Set.of(List.of("a", "newer"), List.of("b", "base"), List.of("c", "last")), Set.copyOf(found));
        }
    }

    /** Whatever is merged by them, and however the block is read. */
    @Test
    void timesOfBlocksAreInTheUnitOfTheTable()
            throws IOException
    {
        Schema table = times("timestamp-micros");
        List<SliceRequest.Column> columns = List.of(ID, new SliceRequest.Column("ts", TIMESTAMP_MICROS), new SliceRequest.Column("list", new ArrayType(TIMESTAMP_MICROS)));
        for (long memory : new long[] {0, 1 << 30}) {
            SliceOfArrays slice = new SliceOfArrays(table, "EVENT_TIME_ORDERING")
                    .base(moment("a", 5_000), moment("b", 5_000))
                    .log(new LogWriter(times("timestamp-millis")).rows("001", moment("a", 6), moment("b", 4), moment("c", 1)).bytes())
                    .log(new LogWriter(table).rows("002", moment("c", 1_001)).bytes());
            Set<Object> found = new HashSet<>();
            for (List<Object> row : slice.rows(new HudiSliceMerger(memory), columns)) {
                found.add(List.of(row.get(0), row.get(1), TIMESTAMP_MICROS.getLong((Block) row.get(2), 0)));
            }
            assertEquals(Set.of(List.of("a", 6_000L, 6_000L), List.of("b", 5_000L, 5_000L), List.of("c", 1_001L, 1_001L)), found);
        }
    }

    /** Some releases wrote milliseconds under this name. */
    @Test
    void microsecondsOfBlocksAreTakenForTheMillisecondsOfTheTable()
            throws IOException
    {
        SliceOfArrays slice = new SliceOfArrays(times("timestamp-millis"), "EVENT_TIME_ORDERING")
                .base(moment("a", 5))
                .log(new LogWriter(times("timestamp-micros")).rows("001", moment("a", 6)).bytes());
        assertEquals(List.of(List.of("a", 6_000L)), slice.rows(new HudiSliceMerger(), List.of(ID, new SliceRequest.Column("ts", TIMESTAMP_MICROS))));
    }

    private static Schema times(String unit)
    {
        String time = "[\"null\",{\"type\":\"long\",\"logicalType\":\"%s\"}]".formatted(unit);
        String list = "[\"null\",{\"type\":\"array\",\"items\":%s}]".formatted(time);
        String text = "{\"name\":\"%s\",\"type\":[\"null\",\"string\"],\"default\":null}";
        return new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"t_record\",\"namespace\":\"hoodie.t\",\"fields\":[%s]}".formatted(String.join(
                ",",
                text.formatted("_hoodie_commit_time"),
                text.formatted("_hoodie_commit_seqno"),
                text.formatted("_hoodie_record_key"),
                text.formatted("_hoodie_partition_path"),
                text.formatted("_hoodie_file_name"),
                text.formatted("id"),
                "{\"name\":\"ts\",\"type\":%s,\"default\":null}".formatted(time),
                "{\"name\":\"list\",\"type\":%s,\"default\":null}".formatted(list))));
    }

    private static Object[] moment(String id, long time)
    {
        return new Object[] {"000", "000_0", id, "p", "f", id, time, List.of(time)};
    }

    private static void assertOlder(String said, Executable read)
    {
        assertRefused("older than the table's schema", read);
        assertRefused(said, read);
    }

    private static void assertRefused(String said, Executable read)
    {
        Throwable problem = assertThrows(RuntimeException.class, read);
        while (problem.getCause() != null) {
            problem = problem.getCause();
        }
        assertTrue(problem instanceof UnsupportedSlice && problem.getMessage().contains(said), problem.toString());
    }

    /** @param needed a name that each block has to have */
    private record Renamed(String needed, String name, String was)
            implements LogColumns
    {
        @Override
        public Set<String> names()
        {
            return Set.of(needed);
        }

        @Override
        public boolean isSame(String column)
        {
            return !column.equals(name);
        }

        @Override
        public StoredColumns stored(List<SliceRequest.Column> columns)
        {
            return new StoredColumns(
                    columns.stream().map(column -> column.name().equals(name) ? new SliceRequest.Column(was, column.type()) : column).toList(),
                    page -> page);
        }
    }

    @Test
    void blocksWithoutASchemaAreRefused()
            throws IOException
    {
        for (HoodieLogBlockType type : List.of(HoodieLogBlockType.HFILE_DATA_BLOCK, HoodieLogBlockType.AVRO_DATA_BLOCK)) {
            SliceOfArrays slice = byEventTime().base(row("a", 1, "base")).log(log().nameless("001", type).bytes());
            for (long memory : new long[] {0, 1 << 30}) {
                assertRefused("no schema of its own", () -> slice.rows(new HudiSliceMerger(memory), List.of(ID, NAME)));
            }
        }
    }

    @Test
    void whatIsMissingIsTold()
    {
        SliceOfArrays slice = byEventTime().log(new byte[0]).set("skipbridge.hudi.schema", "no schema");
        assertTrue(assertThrows(UnsupportedSlice.class, () -> rows(slice)).getMessage().contains("schema"));
        SliceOfArrays custom = new SliceOfArrays(SCHEMA, "CUSTOM").log(new byte[0]).set("hoodie.record.merge.strategy.id", "8d2e9f8c-0000-4a6f-9c7a-000000000000");
        assertTrue(assertThrows(UnsupportedSlice.class, () -> rows(custom)).getMessage().contains("merge"));
    }

    private static SliceOfArrays byEventTime()
    {
        return new SliceOfArrays(SCHEMA, "EVENT_TIME_ORDERING");
    }

    private static LogWriter log()
    {
        return new LogWriter(SCHEMA);
    }

    private static Object[] row(String id, long ts, String name)
    {
        return new Object[] {"000", "000_0", id, "p", "f", id, ts, name, "rest"};
    }

    private static List<List<Object>> rows(SliceOfArrays slice)
            throws IOException
    {
        List<List<Object>> found = slice.rows(new HudiSliceMerger(), List.of(ID, NAME));
        return found.stream().sorted(Comparator.comparing(row -> (String) row.getFirst())).toList();
    }
}
