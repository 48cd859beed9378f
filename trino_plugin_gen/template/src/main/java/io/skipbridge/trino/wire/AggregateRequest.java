package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryWriter;

import java.util.List;

/** Aggregates that statistics may answer. Without aggregates and groups it asks only whether each file matches the predicate as a whole. */
public record AggregateRequest(List<Aggregate> aggregates, List<String> groupBy, int maxWaitMillis)
{
    /** {@code count}, {@code min} or {@code max} of a column; count of the empty name counts rows. */
    public record Aggregate(String function, String column)
    {
        void write(BinaryWriter writer)
        {
            writer.stringField(1, function);
            writer.stringField(2, column);
            writer.stop();
        }

        @Override
        public String toString()
        {
            return function + "(" + (column.isEmpty() ? "*" : column) + ")";
        }
    }

    void write(BinaryWriter writer)
    {
        writer.structListField(1, aggregates, aggregate -> aggregate.write(writer));
        writer.stringListField(2, groupBy);
        writer.i32Field(3, maxWaitMillis);
        writer.stop();
    }
}
