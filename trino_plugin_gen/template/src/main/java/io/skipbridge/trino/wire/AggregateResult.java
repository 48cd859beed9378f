package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

/** The planner's result of an {@link AggregateRequest}; {@code endpoint} is the process that holds the file set it is true of. */
public record AggregateResult(String endpoint, boolean enforced, boolean answered, String reason, String rows, long files)
{
    static AggregateResult read(BinaryReader reader)
    {
        String endpoint = "";
        boolean enforced = false;
        boolean answered = false;
        String reason = "";
        String rows = "";
        long files = 0;
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> endpoint = reader.is(WireType.STRING) ? reader.string() : endpoint;
                case 2 -> enforced = reader.is(WireType.BOOL) ? reader.bool() : enforced;
                case 3 -> answered = reader.is(WireType.BOOL) ? reader.bool() : answered;
                case 4 -> reason = reader.is(WireType.STRING) ? reader.string() : reason;
                case 5 -> rows = reader.is(WireType.STRING) ? reader.string() : rows;
                case 6 -> files = reader.is(WireType.I64) ? reader.i64() : files;
                default -> reader.skip();
            }
        }
        return new AggregateResult(endpoint, enforced, answered, reason, rows, files);
    }
}
