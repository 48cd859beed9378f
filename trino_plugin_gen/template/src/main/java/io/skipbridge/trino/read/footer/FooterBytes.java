package io.skipbridge.trino.read.footer;

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
    /** What is read of a large file's end. */
    public static final int TAIL = 48 << 10;
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int MAGIC = 'P' | 'A' << 8 | 'R' << 16 | '1' << 24;
    private static final int ENCRYPTED_MAGIC = 'P' | 'A' << 8 | 'R' << 16 | 'E' << 24;

    CompactReader reader()
    {
        return new CompactReader(bytes, start, end);
    }

    /** How many bytes the footer and what follows it take, as the end of the file says. */
    public static int lengthWithPostscript(byte[] tail, long fileSize, ParquetDataSourceId id)
            throws IOException
    {
        return footerLength(tail, fileSize, id) + POSTSCRIPT;
    }

    /** Finds the footer in the end of a file, which must hold it whole. */
    public static FooterBytes in(byte[] tail, long fileSize, ParquetDataSourceId id)
            throws IOException
    {
        int length = footerLength(tail, fileSize, id);
        return new FooterBytes(tail, tail.length - POSTSCRIPT - length, tail.length - POSTSCRIPT);
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
