package io.skipbridge.trino.wire;

import java.util.List;

/**
 * An open plan: its handle and the process that holds it.
 *
 * @param rowFilter a predicate that every row of the version satisfies, and that a reader enforces; empty where there is none
 */
public record Plan(String handle, String endpoint, long generation, String freshness, List<String> dropped, String snapshotId, String rowFilter)
{
    static Plan read(BinaryReader reader)
    {
        String handle = "";
        String endpoint = "";
        long generation = -1;
        String freshness = "";
        List<String> dropped = List.of();
        String snapshotId = "";
        String rowFilter = "";
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> handle = reader.is(WireType.STRING) ? reader.string() : handle;
                case 2 -> endpoint = reader.is(WireType.STRING) ? reader.string() : endpoint;
                case 3 -> generation = reader.is(WireType.I64) ? reader.i64() : generation;
                case 4 -> freshness = reader.is(WireType.STRING) ? reader.string() : freshness;
                case 5 -> dropped = reader.is(WireType.LIST) ? reader.strings() : dropped;
                case 6 -> snapshotId = reader.is(WireType.STRING) ? reader.string() : snapshotId;
                case 7 -> rowFilter = reader.is(WireType.STRING) ? reader.string() : rowFilter;
                default -> reader.skip();
            }
        }
        return new Plan(handle, endpoint, generation, freshness, List.copyOf(dropped), snapshotId, rowFilter);
    }
}
