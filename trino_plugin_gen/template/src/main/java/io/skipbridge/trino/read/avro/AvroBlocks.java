package io.skipbridge.trino.read.avro;

import io.skipbridge.trino.read.page.FileReader;
import io.skipbridge.trino.read.page.PlannedBytes;
import io.skipbridge.trino.read.storage.PlannedInputFile;
import io.trino.hive.formats.TrinoDataInputStream;
import io.trino.spi.Page;
import io.trino.spi.connector.SourcePage;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.SeekableByteArrayInput;
import org.apache.avro.file.SeekableInput;

import java.io.IOException;
import java.util.Optional;

/** The blocks of a file, or of its byte range, as pages. The file's container is read by Avro, rows are decoded by Trino. */
final class AvroBlocks
        implements FileReader
{
    private static final long GUESSED_BYTES = 16 << 20;
    /** An old library for C puts the marker here too, which Avro's reader knows. */
    private static final String MARKER = "avro.sync";

    private final DataFileReader<Optional<Page>> blocks;
    private final AvroDecoder decoder;
    private final long end;

    private AvroBlocks(DataFileReader<Optional<Page>> blocks, AvroDecoder decoder, long end)
    {
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
            return new AvroBlocks(blocks, decoder, end);
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
        while (!blocks.pastSync(end) && blocks.hasNext()) {
            Optional<Page> page;
            try {
                page = blocks.next();
            }
            catch (AvroRuntimeException e) {
                throw new IOException(e);
            }
            if (page.isPresent()) {
                return SourcePage.create(page.get());
            }
        }
        return decoder.rest().map(SourcePage::create).orElse(null);
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
