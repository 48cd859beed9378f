package io.skipbridge.trino.read.avro;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.OpenFile;
import io.skipbridge.trino.read.file.RowFormat;
import io.trino.spi.predicate.TupleDomain;
import org.apache.avro.Schema;

import java.io.IOException;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentMap;

/** Avro, by Trino's own decoder, for one page source. A block belongs to the range that contains the sync marker before it. */
public final class AvroFormat
        implements RowFormat
{
    private static final int FIRST = 1 << 20;

    private final Map<Map<String, String>, Schema> schemas;
    private final Map<Schema, AvroDecoder> decoders = new IdentityHashMap<>();

    /** @param schemas the declared ones of the scan, by the properties that declare them; page sources share them */
    public AvroFormat(ConcurrentMap<Map<String, String>, Schema> schemas)
    {
        this.schemas = schemas;
    }

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
        return true;
    }

    @Override
    public FileReader open(FileScan scan, OpenFile file, TupleDomain<BridgeColumnHandle> predicate)
            throws IOException
    {
        long length = Math.min(file.planned().length(), file.bytes().size() - file.planned().start());
        if (length <= 0) {
            return () -> null;
        }
        Schema declared = schemas.computeIfAbsent(file.planned().reader().properties(), properties -> AvroSchemas.declared(scan, properties));
        AvroDecoder decoder = decoders.computeIfAbsent(declared, key -> new AvroDecoder(AvroSchemas.projected(key, scan.dataColumns(), file.planned().path())));
        try {
            return AvroBlocks.open(file.planned().path(), file.bytes(), file.planned().start(), file.planned().start() + length, decoder);
        }
        catch (AvroDecoder.Mismatch e) {
            throw AvroSchemas.mismatch(file.planned().path(), e);
        }
    }
}
