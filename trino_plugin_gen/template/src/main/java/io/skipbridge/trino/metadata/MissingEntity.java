package io.skipbridge.trino.metadata;

import io.skipbridge.trino.wire.BridgeFailure;
import io.trino.spi.TrinoException;

/** Distinguishes a missing schema or table, which the engine reports itself, from other failures. */
final class MissingEntity
{
    private MissingEntity() {}

    static boolean schema(TrinoException exception)
    {
        return exception.getCause() instanceof BridgeFailure failure && failure.code().equals("SCHEMA_NOT_FOUND");
    }

    static boolean table(TrinoException exception)
    {
        return schema(exception) || (exception.getCause() instanceof BridgeFailure failure && failure.code().equals("TABLE_NOT_FOUND"));
    }
}
