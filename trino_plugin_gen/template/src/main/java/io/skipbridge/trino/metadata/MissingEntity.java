package io.skipbridge.trino.metadata;

import io.skipbridge.trino.wire.BridgeFailure;
import io.trino.spi.TrinoException;

/** Tells "there is no such table" from every other failure: the engine has its own words for it. */
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
