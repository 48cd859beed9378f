package io.skipbridge.trino.metadata;

import io.skipbridge.client.BridgeFailure;
import io.trino.spi.TrinoException;

import java.util.Set;

import static io.trino.spi.ErrorType.USER_ERROR;

/** Distinguishes errors that tell of one schema or table from failures of the planner, the metastore or a store. */
public final class MissingEntity
{
    private static final Set<String> OF_A_TABLE = Set.of("FILE_CORRUPT", "PARTITION_ABSENT", "SEGMENT_LOG_CORRUPT");
    private static final Set<String> OF_THE_CALL = Set.of("INVALID_REQUEST", "PROTOCOL_MISMATCH");

    private MissingEntity() {}

    static boolean schema(TrinoException exception)
    {
        return exception.getCause() instanceof BridgeFailure failure && failure.code().equals("SCHEMA_NOT_FOUND");
    }

    /** Whether one table cannot be read, whatever becomes of the others. */
    public static boolean refused(TrinoException exception)
    {
        if (exception.getCause() instanceof BridgeFailure failure) {
            return OF_A_TABLE.contains(failure.code()) || (failure.category().equals(USER_ERROR.name()) && !OF_THE_CALL.contains(failure.code()));
        }
        return exception.getErrorCode().getType() == USER_ERROR;
    }

    /** Whether the planner does not read tables of this kind, which are files of directories. */
    public static boolean kind(TrinoException exception)
    {
        return exception.getCause() instanceof BridgeFailure failure && failure.code().equals("UNSUPPORTED_TABLE");
    }

    /** What is wrong, without the remedy. */
    public static String sentence(TrinoException exception)
    {
        return exception.getCause() instanceof BridgeFailure failure ? failure.getMessage() : exception.getMessage();
    }

    static boolean table(TrinoException exception)
    {
        return schema(exception) || (exception.getCause() instanceof BridgeFailure failure && failure.code().equals("TABLE_NOT_FOUND"));
    }
}
