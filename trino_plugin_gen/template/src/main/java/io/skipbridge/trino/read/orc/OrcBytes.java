package io.skipbridge.trino.read.orc;

import io.airlift.slice.Slices;
import io.skipbridge.trino.read.file.PlannedBytes;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.trino.orc.AbstractOrcDataSource;
import io.trino.orc.MemoryOrcDataSource;
import io.trino.orc.OrcDataSource;
import io.trino.orc.OrcDataSourceId;
import io.trino.orc.OrcReaderOptions;

import java.io.IOException;

/** A large planned file, of which the needed ranges are read. Storage that does not give them is FILE_UNREADABLE, and no IOException. */
final class OrcBytes
        extends AbstractOrcDataSource
{
    private final PlannedBytes file;

    private OrcBytes(OrcDataSourceId id, PlannedBytes file, OrcReaderOptions options)
    {
        super(id, file.size(), options);
        this.file = file;
    }

    /** The source over a planned file: over its bytes if all of them are in memory; one that reads ahead if that helps. */
    static OrcDataSource of(String path, PlannedBytes file, OrcReaderOptions options)
    {
        OrcDataSourceId id = new OrcDataSourceId(path);
        if (file.whole().isPresent()) {
            return new MemoryOrcDataSource(id, Slices.wrappedBuffer(file.whole().get()));
        }
        OrcBytes source = new OrcBytes(id, file, options);
        return file.readsAhead() ? new AheadOrcSource(source, file, options) : source;
    }

    @Override
    protected void readInternal(long position, byte[] buffer, int offset, int length)
    {
        try {
            file.readFully(position, buffer, offset, length);
        }
        catch (IOException e) {
            throw ReadableFile.unreadable(getId().toString(), e);
        }
    }
}
