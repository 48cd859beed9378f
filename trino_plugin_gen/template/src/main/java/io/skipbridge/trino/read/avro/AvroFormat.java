package io.skipbridge.trino.read.avro;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.page.AheadRange;
import io.skipbridge.trino.read.page.FileReader;
import io.skipbridge.trino.read.page.FileScan;
import io.skipbridge.trino.read.page.OpenFile;
import io.skipbridge.trino.read.page.RowFormat;
import io.skipbridge.trino.read.storage.PlannedInputFile;
import io.trino.hive.formats.avro.AvroFileReader;
import io.trino.hive.formats.avro.AvroTypeException;
import io.trino.hive.formats.avro.HiveAvroTypeBlockHandler;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.TupleDomain;
import org.apache.avro.Schema;

import java.io.EOFException;
import java.io.IOException;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;

import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;

/** Avro, by Trino's own reader. A block belongs to the range that contains the sync marker before it. */
public final class AvroFormat
        implements RowFormat
{
    private static final int FIRST = 1 << 20;

    private final Map<Map<String, String>, Schema> schemas = new ConcurrentHashMap<>();

    @Override
    public String spelled()
    {
        return "Avro";
    }

    @Override
    public AheadRange ahead()
    {
        return AheadRange.begin(AheadRange.SMALL_FILE, FIRST);
    }

    @Override
    public boolean damaged(IOException problem)
    {
        for (Throwable cause = problem; cause != null; cause = cause.getCause()) {
            if (cause instanceof EOFException || cause.getClass().getName().startsWith("org.apache.avro.")) {
                return true;
            }
        }
        return String.valueOf(problem.getMessage()).startsWith("Invalid sync");
    }

    @Override
    public FileReader open(FileScan scan, OpenFile file, TupleDomain<BridgeColumnHandle> predicate)
            throws IOException
    {
        long length = Math.min(file.planned().length(), file.bytes().size() - file.planned().start());
        if (length <= 0) {
            return new Blocks(null);
        }
        Schema declared = schemas.computeIfAbsent(file.planned().reader().properties(), properties -> AvroSchemas.declared(scan, properties));
        Schema wanted = AvroSchemas.projected(declared, scan.dataColumns(), file.planned().path());
        try {
            return new Blocks(new AvroFileReader(
                    new PlannedInputFile(file.planned().path(), file.bytes()),
                    wanted,
                    new HiveAvroTypeBlockHandler(TIMESTAMP_MICROS),
                    file.planned().start(),
                    OptionalLong.of(length)));
        }
        catch (AvroTypeException e) {
            throw AvroSchemas.mismatch(file.planned().path(), e);
        }
    }

    /** @param reader null of an empty range */
    private record Blocks(AvroFileReader reader)
            implements FileReader
    {
        private static final long GUESSED_BYTES = 16 << 20;

        @Override
        public SourcePage next()
                throws IOException
        {
            return reader != null && reader.hasNext() ? SourcePage.create(reader.next()) : null;
        }

        @Override
        public long memoryBytes()
        {
            return reader == null ? 0 : GUESSED_BYTES;
        }

        @Override
        public void close()
                throws IOException
        {
            if (reader != null) {
                reader.close();
            }
        }
    }
}
