package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Which of the tables asked about have an index, and which class of these hooks extends which input format. */
public final class IndexedTables
{
    private final Map<String, String> locations;
    private final Map<String, String> inputFormats;
    private final List<String> undecided;

    private IndexedTables(Map<String, String> locations, Map<String, String> inputFormats, List<String> undecided)
    {
        this.locations = locations;
        this.inputFormats = inputFormats;
        this.undecided = undecided;
    }

    static IndexedTables read(BinaryReader reader)
    {
        int protocol = -1;
        Map<String, String> locations = Collections.emptyMap();
        Map<String, String> inputFormats = Collections.emptyMap();
        List<String> undecided = Collections.emptyList();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1:
                    protocol = reader.is(WireType.I32) ? reader.i32() : protocol;
                    break;
                case 2:
                    locations = reader.is(WireType.MAP) ? reader.stringMap() : locations;
                    break;
                case 3:
                    inputFormats = reader.is(WireType.MAP) ? reader.stringMap() : inputFormats;
                    break;
                case 4:
                    undecided = reader.is(WireType.LIST) ? reader.strings() : undecided;
                    break;
                default:
                    reader.skip();
            }
        }
        PlannerClient.requireProtocol(protocol);
        return new IndexedTables(locations, inputFormats, undecided);
    }

    /** Canonical URIs by table, {@code schema.table}. */
    public Map<String, String> locations()
    {
        return locations;
    }

    /** Classes of these hooks by the name of the input format that they extend. */
    public Map<String, String> inputFormats()
    {
        return inputFormats;
    }

    /** Tables about which the planner has not decided yet. */
    public List<String> undecided()
    {
        return undecided;
    }
}
