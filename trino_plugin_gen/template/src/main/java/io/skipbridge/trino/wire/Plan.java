package io.skipbridge.trino.wire;

import java.util.List;

/** An open plan: its handle and the process that holds it. */
public record Plan(String handle, String endpoint, long generation, String freshness, List<String> dropped)
{
    static Plan read(BinaryReader reader)
    {
        String handle = "";
        String endpoint = "";
        long generation = -1;
        String freshness = "";
        List<String> dropped = List.of();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> handle = reader.is(WireType.STRING) ? reader.string() : handle;
                case 2 -> endpoint = reader.is(WireType.STRING) ? reader.string() : endpoint;
                case 3 -> generation = reader.is(WireType.I64) ? reader.i64() : generation;
                case 4 -> freshness = reader.is(WireType.STRING) ? reader.string() : freshness;
                case 5 -> dropped = reader.is(WireType.LIST) ? reader.strings() : dropped;
                default -> reader.skip();
            }
        }
        return new Plan(handle, endpoint, generation, freshness, List.copyOf(dropped));
    }
}
