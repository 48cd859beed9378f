package io.skipbridge.trino.read.footer;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Caches the schemas of a scan's files, the newest first. The scan's page sources on a worker share it. */
public final class SchemaCache
{
    private static final int CAPACITY = 16;

    private final List<BridgeColumnHandle> channels;
    private final DateTimeZone timeZone;
    private volatile List<ReadSchema> schemas = List.of();

    public SchemaCache(List<BridgeColumnHandle> channels, DateTimeZone timeZone)
    {
        this.channels = channels;
        this.timeZone = timeZone;
    }

    public ReadSchema get(FooterBytes footer, ReaderSpec reader, TupleDomain<BridgeColumnHandle> predicate, ParquetDataSourceId id)
            throws IOException
    {
        String times = FileTimes.told(reader);
        FileSchema file = null;
        for (ReadSchema schema : schemas) {
            if (schema.file().begins(footer) && schema.file().times().equals(times)) {
                if (schema.isFor(predicate)) {
                    return schema;
                }
                file = schema.file();
            }
        }
        ReadSchema added = ReadSchema.of(file == null ? FileSchema.read(footer, times, id) : file, channels, predicate, timeZone, id.toString());
        add(added);
        return added;
    }

    private synchronized void add(ReadSchema added)
    {
        List<ReadSchema> next = new ArrayList<>();
        next.add(added);
        next.addAll(schemas.subList(0, Math.min(schemas.size(), CAPACITY - 1)));
        schemas = List.copyOf(next);
    }
}
