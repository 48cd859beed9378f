package io.skipbridge.trino.read.page;

import io.skipbridge.trino.BridgeErrorCode;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.UncheckedIOException;

import static io.trino.spi.StandardErrorCode.GENERIC_INTERNAL_ERROR;
import static org.junit.jupiter.api.Assertions.assertEquals;

class TestReadFailure
{
    @Test
    void storageThatFailsIsToldAsSuchHoweverTheReaderWrapsIt()
    {
        IOException storage = new IOException("the token has expired");
        for (Throwable problem : new Throwable[] {storage, new UncheckedIOException(storage), new TrinoException(GENERIC_INTERNAL_ERROR, storage)}) {
            TrinoException told = (TrinoException) ReadFailure.of(problem, "s3://lake/f");
            assertEquals(BridgeErrorCode.FILE_UNREADABLE.toErrorCode(), told.getErrorCode());
        }
    }
}
