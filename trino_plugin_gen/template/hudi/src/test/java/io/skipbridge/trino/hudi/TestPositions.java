package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceRequest;
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

/** Merging by position, against a list. Single cases are in tests/support/hudi_merge_cases.py, for both mergers. */
class TestPositions
{
    private static final String BASE_AT = "000";
    private static final Schema SCHEMA = SchemaBuilder.record("t_record").namespace("hoodie.t").fields()
            .optionalString("_hoodie_commit_time").optionalString("_hoodie_commit_seqno").optionalString("_hoodie_record_key")
            .optionalString("_hoodie_partition_path").optionalString("_hoodie_file_name")
            .optionalString("id").optionalLong("ts").optionalString("name").endRecord();

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

    private static SliceOfArrays table()
    {
        return new SliceOfArrays(SCHEMA, "COMMIT_TIME_ORDERING");
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
