package io.skipbridge.trino.read.avro;

import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.PlannedBytes;
import io.skipbridge.trino.read.storage.PlannedInputFile;
import io.trino.hive.formats.TrinoDataInputStream;
import io.trino.spi.Page;
import io.trino.spi.connector.SourcePage;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.SeekableByteArrayInput;
import org.apache.avro.file.SeekableInput;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Optional;

import static org.apache.avro.file.DataFileConstants.SYNC_SIZE;

/**
 * The blocks of a file, or of its byte range, as pages. The file's container is read by Avro, rows are decoded by Trino. Avro takes a block without rows, and
 * one that the file does not have whole, for the end, so what a block states is read here first.
 */
final class AvroBlocks
        implements FileReader
{
    private static final long GUESSED_BYTES = 16 << 20;
    /** An old library for C puts the marker here too, which Avro's reader knows. */
    private static final String MARKER = "avro.sync";

    private final SeekableInput input;
    private final DataFileReader<Optional<Page>> blocks;
    private final AvroDecoder decoder;
    private final long end;
    /** Of the current block, those that are not decoded yet. */
    private long rows;

    private AvroBlocks(SeekableInput input, DataFileReader<Optional<Page>> blocks, AvroDecoder decoder, long end)
    {
        this.input = input;
        this.blocks = blocks;
        this.decoder = decoder;
        this.end = end;
    }

    /** Errors: {@link AvroDecoder.Mismatch}: the file's schema cannot be resolved to the wanted one. */
    static AvroBlocks open(String path, PlannedBytes bytes, long start, long end, AvroDecoder decoder)
            throws IOException
    {
        SeekableInput input = input(path, bytes);
        try {
            DataFileReader<Optional<Page>> blocks = new DataFileReader<>(input, decoder);
            decoder.describe(blocks);
            // behind the header a reader is at the first block
            if (start > 0 || blocks.getMeta(MARKER) != null) {
                blocks.sync(start);
            }
            return new AvroBlocks(input, blocks, decoder, end);
        }
        catch (IOException | RuntimeException e) {
            input.close();
            throw e;
        }
    }

    private static SeekableInput input(String path, PlannedBytes bytes)
            throws IOException
    {
        Optional<byte[]> whole = bytes.whole();
        return whole.isPresent() ? new SeekableByteArrayInput(whole.get()) : new Stream(new TrinoDataInputStream(new PlannedInputFile(path, bytes).newStream()), bytes.size());
    }

    @Override
    public SourcePage next()
            throws IOException
    {
        try {
            while (rows > 0 || nextBlock()) {
                Optional<Page> page = blocks.next();
                rows--;
                if (rows == 0 && !decoder.atEnd()) {
                    throw new IOException("the block before byte %d has more bytes than its rows".formatted(blocks.previousSync()));
                }
                if (page.isPresent()) {
                    return SourcePage.create(page.get());
                }
            }
        }
        catch (AvroRuntimeException e) {
            throw new IOException(e);
        }
        return decoder.rest().map(SourcePage::create).orElse(null);
    }

    /** Goes to the next block with rows. False behind the range's last block. */
    private boolean nextBlock()
            throws IOException
    {
        while (!blocks.pastSync(end)) {
            long start = blocks.previousSync();
            input.seek(start);
            BinaryDecoder stated = DecoderFactory.get().directBinaryDecoder(new Bytes(input), null);
            long size;
            try {
                rows = stated.readLong();
                size = stated.readLong();
            }
            catch (EOFException e) {
                throw new IOException("the file ends in the head of the block at byte %d".formatted(start), e);
            }
            long rest = input.length() - input.tell() - SYNC_SIZE;
            if (rows < 0 || size < 0 || size > rest) {
                throw new EOFException("the block at byte %d states %d rows in %d bytes, where %d bytes are left".formatted(start, rows, size, Math.max(rest, 0)));
            }
            long next = input.tell() + size + SYNC_SIZE;
            blocks.seek(start);
            // reads the block, and checks its marker
            if (blocks.hasNext()) {
                return true;
            }
            // asked again, Avro checks that the bytes of this block were read to their end
            blocks.hasNext();
            if (next == input.length()) {
                return false;
            }
            blocks.seek(next);
        }
        return false;
    }

    @Override
    public long memoryBytes()
    {
        return GUESSED_BYTES;
    }

    @Override
    public void close()
            throws IOException
    {
        blocks.close();
    }

    private static final class Bytes
            extends InputStream
    {
        private final SeekableInput input;
        private final byte[] one = new byte[1];

        private Bytes(SeekableInput input)
        {
            this.input = input;
        }

        @Override
        public int read()
                throws IOException
        {
            return input.read(one, 0, 1) == 1 ? one[0] & 0xFF : -1;
        }
    }

    private record Stream(TrinoDataInputStream stream, long length)
            implements SeekableInput
    {
        @Override
        public void seek(long position)
                throws IOException
        {
            stream.seek(position);
        }

        @Override
        public long tell()
                throws IOException
        {
            return stream.getPos();
        }

        @Override
        public int read(byte[] buffer, int offset, int length)
                throws IOException
        {
            return stream.read(buffer, offset, length);
        }

        @Override
        public void close()
                throws IOException
        {
            stream.close();
        }
    }
}
