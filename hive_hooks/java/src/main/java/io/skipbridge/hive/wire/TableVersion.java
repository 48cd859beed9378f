package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.util.LinkedHashMap;
import java.util.Map;

/** The columns of one version of a table. */
public final class TableVersion
{
    private final Map<String, String> columns;
    private final String snapshotId;

    private TableVersion(Map<String, String> columns, String snapshotId)
    {
        this.columns = columns;
        this.snapshotId = snapshotId;
    }

    static TableVersion read(BinaryReader reader)
    {
        Map<String, String> columns = new LinkedHashMap<>();
        String snapshotId = "";
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 3:
                    for (int left = reader.is(WireType.LIST) ? reader.list(WireType.STRUCT) : 0; left > 0; left--) {
                        column(reader, columns);
                    }
                    break;
                case 10:
                    snapshotId = reader.is(WireType.STRING) ? reader.string() : snapshotId;
                    break;
                default:
                    reader.skip();
            }
        }
        return new TableVersion(columns, snapshotId);
    }

    private static void column(BinaryReader reader, Map<String, String> columns)
    {
        String name = "";
        String hiveType = "";
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1:
                    name = reader.is(WireType.STRING) ? reader.string() : name;
                    break;
                case 2:
                    hiveType = reader.is(WireType.STRING) ? reader.string() : hiveType;
                    break;
                default:
                    reader.skip();
            }
        }
        columns.put(name, hiveType);
    }

    /** Hive's types by the names of the columns, in their order. */
    public Map<String, String> columns()
    {
        return columns;
    }

    /** Names this version for later requests. */
    public String snapshotId()
    {
        return snapshotId;
    }
}
