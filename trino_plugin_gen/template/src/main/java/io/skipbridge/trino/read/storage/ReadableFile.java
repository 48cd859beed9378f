package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.trino.spi.TrinoException;

import java.io.Closeable;
import java.io.IOException;

/** An open file of any storage. It is the planned file: opening or reading another one is an error. */
public interface ReadableFile
        extends Closeable
{
    long size();

    void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException;

    private static String remedy(String path)
    {
        return path.startsWith("s3") ? ". Check s3.endpoint, s3.region, the keys and the other s3 properties of the catalog" : "";
    }

    /** The error of a file whose bytes the storage does not give. It adds the cause, because file systems of object stores say only there why. */
    static TrinoException unreadable(String path, IOException problem)
    {
        Throwable cause = problem.getCause();
        String reason = cause == null || cause.getMessage() == null ? problem.getMessage() : "%s: %s".formatted(problem.getMessage(), cause.getMessage());
        return new TrinoException(BridgeErrorCode.FILE_UNREADABLE, "%s cannot be read: %s%s".formatted(path, reason, remedy(path)), problem);
    }
}
