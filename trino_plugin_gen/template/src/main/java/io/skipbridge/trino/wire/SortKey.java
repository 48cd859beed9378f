package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryWriter;

/** One key of an ORDER BY. */
public record SortKey(String column, boolean descending, boolean nullsFirst)
{
    void write(BinaryWriter writer)
    {
        writer.stringField(1, column);
        writer.boolField(2, descending);
        writer.boolField(3, nullsFirst);
        writer.stop();
    }

    @Override
    public String toString()
    {
        return column + (descending ? " DESC" : "") + (nullsFirst == descending ? "" : nullsFirst ? " NULLS FIRST" : " NULLS LAST");
    }
}
