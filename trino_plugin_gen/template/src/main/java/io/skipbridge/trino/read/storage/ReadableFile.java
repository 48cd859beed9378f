package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.trino.spi.TrinoException;

import java.io.Closeable;
import java.io.IOException;
import java.util.Objects;

/** An open file of any storage. It is the planned file: opening or reading another one is an error. */
public interface ReadableFile
        extends Closeable
{
    long size();

    void readFully(long position, byte[] buffer, int offset, int length)
            throws IOException;

    private static String remedy(String path)
    {
        if (path.startsWith("hdfs:")) {
            return ". Check the name node, its data nodes (hdfs dfsadmin -report), and whether the user of Trino's node or catalog may read the file";
        }
        return path.startsWith("s3") ? ". Check s3.endpoint, s3.region, the keys and the other s3 properties of the catalog" : "";
    }

    /** The error of a file whose bytes the storage does not give. It adds the cause, because file systems of object stores say only there why. */
    static TrinoException unreadable(String path, IOException problem)
    {
        String reason = told(problem);
        String cause = problem.getCause() == null ? "" : told(problem.getCause());
        if (!reason.contains(cause)) {
            reason = reason.isEmpty() ? cause : "%s: %s".formatted(reason, cause);
        }
        return new TrinoException(BridgeErrorCode.FILE_UNREADABLE, "%s cannot be read: %s%s".formatted(path, reason, remedy(path)), problem);
    }

    /** The message without the trace of a name node, which Hadoop's client adds to it. */
    private static String told(Throwable problem)
    {
        return Objects.requireNonNullElse(problem.getMessage(), "").replaceAll("\\n\\tat [^\\n]*", "").strip();
    }
}
