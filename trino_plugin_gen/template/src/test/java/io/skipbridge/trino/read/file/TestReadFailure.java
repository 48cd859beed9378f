package io.skipbridge.trino.read.file;

import io.skipbridge.trino.BridgeErrorCode;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.UncheckedIOException;

import static io.trino.spi.StandardErrorCode.GENERIC_INTERNAL_ERROR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

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

    @Test
    void aNumberOutsideTheColumnsTypeIsNoDamage()
    {
        TrinoException told = (TrinoException) ReadFailure.of(new ArithmeticException("integer overflow"), "s3://lake/f");
        assertEquals(BridgeErrorCode.TYPE_MISMATCH.toErrorCode(), told.getErrorCode());
        assertTrue(told.getMessage().contains("Declare a type that holds it"), told.getMessage());
    }

    @Test
    void whatHadoopsClientSaysIsToldOnceAndWithoutTheNameNodesTrace()
    {
        IOException refused = new IOException("Permission denied: user=a\n\tat org.apache.Checker.check(Checker.java:1)\n\tat org.apache.Server.run(Server.java:2)\n");
        TrinoException told = (TrinoException) ReadFailure.of(new IOException("Open file f failed: " + refused.getMessage(), refused), "hdfs://node/f");
        assertTrue(told.getMessage().startsWith("hdfs://node/f cannot be read: Open file f failed: Permission denied: user=a. Check"), told.getMessage());
        TrinoException other = (TrinoException) ReadFailure.of(new IOException("outer", new IOException("inner")), "file:///f");
        assertEquals("file:///f cannot be read: outer: inner", other.getMessage());
        assertEquals("file:///f cannot be read: alone", ReadFailure.of(new IOException("alone", new IOException()), "file:///f").getMessage());
    }
}
