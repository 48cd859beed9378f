package io.skipbridge.trino.hudi;

import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.hudi.common.util.collection.ClosableIterator;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.NoSuchElementException;

/** The rows of a block of Avro records. Only what merging needs of them is decoded at first. */
final class LogRows
        implements ClosableIterator<IndexedRecord>
{
    private static final int HEAD = 2 * Integer.BYTES;

    private final LogSchema schema;
    private final byte[] content;
    private final boolean[] merged;
    private final int last;
    private final int end;
    private final ByteBuffer lengths;
    private BinaryDecoder decoder;
    private int position;
    private int left;

    /**
     * @param content the block's content begins at {@code offset}: a version, the number of records, and each with its length
     * @param merged the fields of the required schema that merging asks for
     */
    LogRows(LogSchema schema, byte[] content, int offset, int length, boolean[] merged)
    {
        this.schema = schema;
        this.content = content;
        this.merged = merged;
        this.last = schema.last(merged);
        this.end = offset + length;
        this.lengths = ByteBuffer.wrap(content);
        this.left = lengths.getInt(offset + Integer.BYTES);
        this.position = offset + HEAD;
    }

    LogSchema schema()
    {
        return schema;
    }

    byte[] content()
    {
        return content;
    }

    boolean[] merged()
    {
        return merged;
    }

    @Override
    public boolean hasNext()
    {
        return left > 0;
    }

    @Override
    public IndexedRecord next()
    {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        int length = end - position < Integer.BYTES ? -1 : lengths.getInt(position);
        int offset = position + Integer.BYTES;
        if (length < 0 || length > end - offset) {
            throw new UncheckedIOException(new IOException("a block of a log ends within a record"));
        }
        Object[] values = new Object[merged.length];
        if (last >= 0) {
            decoder = DecoderFactory.get().binaryDecoder(content, offset, length, decoder);
            try {
                schema.read(decoder, values, merged, last);
            }
            catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        position = offset + length;
        left--;
        return new LogRow(this, offset, length, values);
    }

    @Override
    public void close()
    {
        left = 0;
    }
}
