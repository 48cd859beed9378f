package io.skipbridge.trino.read.footer;

import io.skipbridge.trino.read.storage.ReadableFile;
import io.trino.parquet.ParquetCorruptionException;
import io.trino.parquet.ParquetDataSourceId;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** An encoded footer inside a buffer. */
public record FooterBytes(byte[] bytes, int start, int end)
{
    /** Length of the footer and the magic. */
    static final int POSTSCRIPT = 8;
    private static final int TAIL = 48 << 10;
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int MAGIC = 'P' | 'A' << 8 | 'R' << 16 | '1' << 24;
    private static final int ENCRYPTED_MAGIC = 'P' | 'A' << 8 | 'R' << 16 | 'E' << 24;

    CompactReader reader()
    {
        return new CompactReader(bytes, start, end);
    }

    /** Finds the footer of a file in memory. */
    public static FooterBytes whole(byte[] file, ParquetDataSourceId id)
            throws IOException
    {
        int length = footerLength(file, file.length, id);
        return new FooterBytes(file, file.length - POSTSCRIPT - length, file.length - POSTSCRIPT);
    }

    /** Reads the footer from the end of a file, in one read unless it is unusually large. */
    public static FooterBytes read(ReadableFile file, ParquetDataSourceId id)
            throws IOException
    {
        byte[] tail = readTail(file, Math.min(file.size(), TAIL));
        int length = footerLength(tail, file.size(), id);
        if (length + POSTSCRIPT > tail.length) {
            tail = readTail(file, length + POSTSCRIPT);
        }
        return new FooterBytes(tail, tail.length - POSTSCRIPT - length, tail.length - POSTSCRIPT);
    }

    private static byte[] readTail(ReadableFile file, long length)
            throws IOException
    {
        byte[] tail = new byte[(int) length];
        file.readFully(file.size() - length, tail, 0, tail.length);
        return tail;
    }

    private static int footerLength(byte[] tail, long fileSize, ParquetDataSourceId id)
            throws IOException
    {
        if (fileSize < 4 + POSTSCRIPT) {
            throw new ParquetCorruptionException(id, "%s bytes are too few for a Parquet file", fileSize);
        }
        int magic = (int) INT.get(tail, tail.length - 4);
        if (magic == ENCRYPTED_MAGIC) {
            throw new ParquetCorruptionException(id, "the footer is encrypted");
        }
        if (magic != MAGIC) {
            throw new ParquetCorruptionException(id, "it does not end with PAR1: not a Parquet file, or cut short");
        }
        int length = (int) INT.get(tail, tail.length - POSTSCRIPT);
        if (length <= 0 || length > fileSize - 4 - POSTSCRIPT) {
            throw new ParquetCorruptionException(id, "footer of %s bytes in a file of %s", length, fileSize);
        }
        return length;
    }
}
