package io.skipbridge.trino;

import io.skipbridge.client.BridgeFailure;
import io.trino.spi.ErrorCode;
import io.trino.spi.ErrorCodeSupplier;
import io.trino.spi.ErrorType;

import static io.trino.spi.ErrorType.EXTERNAL;
import static io.trino.spi.ErrorType.INTERNAL_ERROR;
import static io.trino.spi.ErrorType.USER_ERROR;

/** The connector's own errors. A planner's error keeps its name and category; its number is in a range of its own. */
public enum BridgeErrorCode
        implements ErrorCodeSupplier
{
    PLANNER_UNAVAILABLE(0, EXTERNAL),
    PLANNER_PROTOCOL(1, EXTERNAL),
    PLAN_LOST(2, EXTERNAL),
    FILE_CHANGED(3, EXTERNAL),
    FILE_UNREADABLE(4, EXTERNAL),
    FILE_CORRUPT(5, EXTERNAL),
    AMBIGUOUS_COLUMN(6, USER_ERROR),
    TYPE_MISMATCH(7, USER_ERROR),
    INVALID_PARTITION_VALUE(8, EXTERNAL),
    INVALID_CONFIGURATION(9, USER_ERROR),
    PREDICATE_NOT_WRITABLE(10, INTERNAL_ERROR),
    UNSUPPORTED_FILE(11, USER_ERROR),
    UNSUPPORTED_FORMAT(12, USER_ERROR),
    MERGE_ON_READ(13, USER_ERROR),
    ROW_FILTER_UNSUPPORTED(14, USER_ERROR),
    OPERATION_BLOCKED(15, USER_ERROR);

    private static final int BASE = 0x0B12_0000;
    private static final int FROM_PLANNER = 0x1000;

    private final ErrorCode errorCode;

    BridgeErrorCode(int code, ErrorType type)
    {
        this.errorCode = new ErrorCode(BASE + code, "SKIPBRIDGE_" + name(), type);
    }

    @Override
    public ErrorCode toErrorCode()
    {
        return errorCode;
    }

    static ErrorCodeSupplier of(BridgeFailure failure)
    {
        ErrorType type;
        try {
            type = ErrorType.valueOf(failure.category());
        }
        catch (IllegalArgumentException e) {
            type = INTERNAL_ERROR;
        }
        ErrorCode code = new ErrorCode(BASE + FROM_PLANNER + (failure.code().hashCode() & 0xFFF), "SKIPBRIDGE_" + failure.code(), type);
        return () -> code;
    }
}
