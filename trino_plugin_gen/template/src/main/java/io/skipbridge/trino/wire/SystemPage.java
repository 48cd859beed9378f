package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.util.List;

/** A page of rows of a system table: a JSON list for each column. */
public record SystemPage(long nextToken, boolean finished, int rowCount, List<String> columns)
{
    static SystemPage read(BinaryReader reader)
    {
        long nextToken = -1;
        boolean finished = false;
        int rowCount = 0;
        List<String> columns = List.of();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> nextToken = reader.is(WireType.I64) ? reader.i64() : nextToken;
                case 2 -> finished = reader.is(WireType.BOOL) ? reader.bool() : finished;
                case 3 -> rowCount = reader.is(WireType.I32) ? reader.i32() : rowCount;
                case 4 -> columns = reader.is(WireType.LIST) ? reader.strings() : columns;
                default -> reader.skip();
            }
        }
        return new SystemPage(nextToken, finished, rowCount, List.copyOf(columns));
    }
}
