package io.skipbridge.trino.read.avro;

import io.trino.hive.formats.avro.AvroPageDataReader;
import io.trino.hive.formats.avro.AvroTypeException;
import io.trino.hive.formats.avro.HiveAvroTypeBlockHandler;
import io.trino.spi.Page;
import org.apache.avro.Schema;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DatumReader;
import org.apache.avro.io.Decoder;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;

/**
 * Decodes rows by Trino's own decoder. Files that were written with one schema share it, one file after another: to make it takes as long as to read some
 * hundred rows.
 */
final class AvroDecoder
        implements DatumReader<Optional<Page>>
{
    /** Of a file's schema, which cannot be resolved to the wanted one. */
    static final class Mismatch
            extends RuntimeException
    {
        private Mismatch(Exception cause)
        {
            super(cause.getMessage(), cause);
        }
    }

    private final Schema wanted;
    private final HiveAvroTypeBlockHandler types = new HiveAvroTypeBlockHandler(TIMESTAMP_MICROS);
    private Schema written;
    private AvroPageDataReader reader;
    private Decoder block;

    AvroDecoder(Schema wanted)
    {
        this.wanted = wanted;
    }

    @Override
    public void setSchema(Schema schema)
    {
        if (reader != null && schema.equals(written)) {
            return;
        }
        reader = null;
        try {
            AvroPageDataReader made = new AvroPageDataReader(wanted, types);
            made.setSchema(schema);
            reader = made;
            written = schema;
        }
        catch (AvroTypeException e) {
            throw new Mismatch(e);
        }
        catch (RuntimeException e) {
            // Trino wraps it, since readers of Avro throw nothing that is checked
            throw e.getCause() instanceof AvroTypeException mismatch ? new Mismatch(mismatch) : e;
        }
    }

    /** Takes the metadata of the file that is read next: timestamps depend on it. */
    void describe(DataFileReader<?> file)
    {
        Map<String, byte[]> metadata = new HashMap<>();
        file.getMetaKeys().forEach(key -> metadata.put(key, file.getMeta(key)));
        types.configure(metadata);
    }

    @Override
    public Optional<Page> read(Optional<Page> reuse, Decoder input)
            throws IOException
    {
        block = input;
        return reader.read(reuse, input);
    }

    /** Whether the row that was decoded last is the last one in the bytes of its block. */
    boolean atEnd()
            throws IOException
    {
        return ((BinaryDecoder) block).isEnd();
    }

    /** Rows that are decoded and in no page yet. The next file may be read after that. */
    Optional<Page> rest()
    {
        return reader.flush();
    }
}
