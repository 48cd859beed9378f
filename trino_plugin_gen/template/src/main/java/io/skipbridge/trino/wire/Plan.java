package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.util.List;
import java.util.Optional;

/**
 * An open plan: its handle and the process that holds it.
 *
 * @param rowFilter a predicate that every row of the version satisfies, and that a reader enforces; empty where there is none
 * @param dynamicFilterWaitMillis how long it pays to wait for the filters of {@code dynamicFilterColumns}, or for all if it is empty, before splits are requested
 * @param first the reply to the first {@code next_splits}, if the planner sent it along. If it is the last one too, the plan is closed and has no handle
 */
public record Plan(
        String handle,
        String endpoint,
        long generation,
        String freshness,
        List<String> dropped,
        String snapshotId,
        String rowFilter,
        int dynamicFilterWaitMillis,
        List<String> dynamicFilterColumns,
        Optional<SplitBatch> first)
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
        int dynamicFilterWaitMillis = 0;
        List<String> dynamicFilterColumns = List.of();
        Optional<SplitBatch> first = Optional.empty();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> handle = reader.is(WireType.STRING) ? reader.string() : handle;
                case 2 -> endpoint = reader.is(WireType.STRING) ? reader.string() : endpoint;
                case 3 -> generation = reader.is(WireType.I64) ? reader.i64() : generation;
                case 4 -> freshness = reader.is(WireType.STRING) ? reader.string() : freshness;
                case 5 -> dropped = reader.is(WireType.LIST) ? reader.strings() : dropped;
                case 6 -> snapshotId = reader.is(WireType.STRING) ? reader.string() : snapshotId;
                case 7 -> rowFilter = reader.is(WireType.STRING) ? reader.string() : rowFilter;
                case 8 -> dynamicFilterWaitMillis = reader.is(WireType.I32) ? reader.i32() : dynamicFilterWaitMillis;
                case 9 -> dynamicFilterColumns = reader.is(WireType.LIST) ? reader.strings() : dynamicFilterColumns;
                case 10 -> first = reader.is(WireType.STRUCT) ? Optional.of(SplitBatch.read(reader)) : first;
                default -> reader.skip();
            }
        }
        return new Plan(handle, endpoint, generation, freshness, List.copyOf(dropped), snapshotId, rowFilter, dynamicFilterWaitMillis, List.copyOf(dynamicFilterColumns), first);
    }
}
