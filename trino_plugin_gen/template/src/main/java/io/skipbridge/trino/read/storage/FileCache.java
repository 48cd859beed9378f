package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.split.SplitPlacement;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoInput;
import io.trino.filesystem.TrinoInputFile;
import io.trino.filesystem.TrinoInputStream;
import io.trino.filesystem.cache.TrinoFileSystemCache;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorContext;

import java.io.Closeable;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/**
 * Trino's file system cache, on the disks of this node. Pages are kept under the name, size and time of the planned file. They come out of a file that
 * checks every read, so that no byte of another version gets under this key; what is read from the cache needs no request.
 */
final class FileCache
        implements Closeable
{
    /** Beyond any grain of times and any difference of clocks. */
    private static final long SETTLED_MILLIS = Duration.ofMinutes(1).toMillis();
    private static final String ENABLED = "fs.cache.enabled";

    private final TrinoModule module;

    private FileCache(TrinoModule module)
    {
        this.module = module;
    }

    static FileCache of(Map<String, String> properties, String catalog, ConnectorContext context)
    {
        try {
            Class.forName("io.trino.filesystem.alluxio.AlluxioFileSystemCacheModule", false, FileCache.class.getClassLoader());
        }
        catch (ClassNotFoundException e) {
            throw new TrinoException(
                    BridgeErrorCode.INVALID_CONFIGURATION,
                    ENABLED + ": the plugin was built without Trino's file system cache. Build the plugin with --storage cache");
        }
        Map<String, String> all = new HashMap<>(properties);
        all.put(ENABLED, "true");
        return new FileCache(new TrinoModule(all, catalog, context));
    }

    SplitPlacement placement()
    {
        return StorageModules.placement(module);
    }

    /**
     * Whether the file may be kept. One that was written moments ago may be written again under the same size and time, and the cache could not tell the
     * two apart.
     */
    static boolean keeps(PlannedFile planned, long nowMillis)
    {
        return planned.modifiedMillis() >= 0 && nowMillis - planned.modifiedMillis() > SETTLED_MILLIS;
    }

    static String key(PlannedFile planned)
    {
        return "%s#%d#%d".formatted(planned.path(), planned.modifiedMillis(), planned.size());
    }

    /** The file through the cache. {@code perUser}: the store may refuse it to this user, though pages of it are kept that another one has read. */
    ReadableFile over(ReadableFile checked, PlannedFile planned, boolean perUser)
    {
        return over(module.get(TrinoFileSystemCache.class), checked, planned, perUser);
    }

    static ReadableFile over(TrinoFileSystemCache cache, ReadableFile checked, PlannedFile planned, boolean perUser)
    {
        return new ReadableFile()
        {
            private TrinoInput input;

            @Override
            public long size()
            {
                return planned.size();
            }

            @Override
            public void readFully(long position, byte[] buffer, int offset, int length)
                    throws IOException
            {
                if (input == null) {
                    if (perUser && planned.size() > 0) {
                        // fails unless the store lets this user read the file
                        checked.readFully(0, new byte[1], 0, 1);
                    }
                    input = cache.cacheInput(new CheckedFile(checked, planned), key(planned));
                }
                input.readFully(position, buffer, offset, length);
            }

            @Override
            public void close()
                    throws IOException
            {
                try (checked) {
                    if (input != null) {
                        input.close();
                    }
                }
            }
        };
    }

    @Override
    public void close()
    {
        module.close();
    }

    /** What the cache reads from: the planned file, or an error. */
    private record CheckedFile(ReadableFile checked, PlannedFile planned)
            implements TrinoInputFile
    {
        @Override
        public TrinoInput newInput()
        {
            return new TrinoInput()
            {
                @Override
                public void readFully(long position, byte[] buffer, int offset, int length)
                        throws IOException
                {
                    checked.readFully(position, buffer, offset, length);
                }

                @Override
                public int readTail(byte[] buffer, int offset, int length)
                        throws IOException
                {
                    int read = (int) Math.min(length, planned.size());
                    checked.readFully(planned.size() - read, buffer, offset, read);
                    return read;
                }

                @Override
                public void close() {}
            };
        }

        @Override
        public TrinoInputStream newStream()
        {
            throw new UnsupportedOperationException("only ranges are read");
        }

        @Override
        public long length()
        {
            return planned.size();
        }

        @Override
        public Instant lastModified()
        {
            return Instant.ofEpochMilli(planned.modifiedMillis());
        }

        @Override
        public boolean exists()
        {
            return true;
        }

        @Override
        public Location location()
        {
            return Location.of(planned.path());
        }
    }
}
