package io.skipbridge.trino.hudi;

import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.util.Utf8;
import org.apache.hudi.common.util.collection.ClosableIterator;
import org.apache.hudi.io.ByteArraySeekableDataInputStream;
import org.apache.hudi.io.ByteBufferBackedInputStream;
import org.apache.hudi.io.hfile.HFileReaderImpl;
import org.apache.hudi.io.hfile.KeyValue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.NoSuchElementException;

/** The rows of a block that is an HFile: its values are Avro records, in the order of their keys. */
final class HFileRows
        implements ClosableIterator<IndexedRecord>
{
    /** A column of this name is not written twice: where it is empty, the key is the value. */
    private static final String KEY = "key";

    private final HFileReaderImpl file;
    private final GenericDatumReader<IndexedRecord> reader;
    private BinaryDecoder decoder;
    private long rowsLeft;
    private boolean left;

    /**
     * @param content the HFile begins at {@code offset}
     * @param required of the rows that are returned
     */
    HFileRows(byte[] content, int offset, int length, Schema written, Schema required)
            throws IOException
    {
        byte[] bytes = Arrays.copyOfRange(content, offset, offset + length);
        this.file = new HFileReaderImpl(new ByteArraySeekableDataInputStream(new ByteBufferBackedInputStream(bytes)), length);
        this.reader = new GenericDatumReader<>(written, required);
        file.initializeMetadata();
        this.rowsLeft = file.getNumKeyValueEntries();
        this.left = rowsLeft > 0 && file.seekTo();
        checkEnd();
    }

    @Override
    public boolean hasNext()
    {
        return left;
    }

    @Override
    public IndexedRecord next()
    {
        if (!left) {
            throw new NoSuchElementException();
        }
        try {
            KeyValue entry = file.getKeyValue().get();
            decoder = DecoderFactory.get().binaryDecoder(entry.getBytes(), entry.getValueOffset(), entry.getValueLength(), decoder);
            IndexedRecord row = reader.read(null, decoder);
            Schema.Field key = row.getSchema().getField(KEY);
            if (key != null && row.get(key.pos()) instanceof CharSequence text && text.isEmpty()) {
                int begin = entry.getKeyContentOffset();
                row.put(key.pos(), new Utf8(Arrays.copyOfRange(entry.getBytes(), begin, begin + entry.getKeyContentLength())));
            }
            rowsLeft--;
            left = file.next();
            checkEnd();
            return row;
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The end comes after as many rows as the trailer states, and not before. */
    private void checkEnd()
            throws IOException
    {
        if (left != rowsLeft > 0) {
            throw new IOException("an HFile block has other rows than its trailer states: " + rowsLeft + " are left at its end");
        }
    }

    @Override
    public void close()
    {
        left = false;
        try {
            file.close();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
