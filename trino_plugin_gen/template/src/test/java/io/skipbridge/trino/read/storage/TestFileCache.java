package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoInput;
import io.trino.filesystem.TrinoInputFile;
import io.trino.filesystem.TrinoInputStream;
import io.trino.filesystem.cache.TrinoFileSystemCache;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestFileCache
{
    private static final long TIME = 1_700_000_000_000L;

    private final WholeFiles cache = new WholeFiles();
    private byte[] stored = {1, 2, 3};
    private boolean changed;
    private boolean perUser;
    private boolean denied;
    private int reads;

    @Test
    void readsEachFileOnce()
            throws IOException
    {
        assertArrayEquals(new byte[] {1, 2, 3}, read(planned(TIME)));
        assertArrayEquals(new byte[] {1, 2, 3}, read(planned(TIME)));
        assertEquals(1, reads);
    }

    @Test
    void readsAnotherVersionAnew()
            throws IOException
    {
        read(planned(TIME));
        stored = new byte[] {4, 5, 6};
        assertArrayEquals(new byte[] {4, 5, 6}, read(planned(TIME + 1_000)));
        assertArrayEquals(new byte[] {1, 2, 3}, read(planned(TIME)), "the rows of the planned version");
    }

    @Test
    void keepsNoByteOfAnotherVersion()
            throws IOException
    {
        changed = true;
        assertThrows(TrinoException.class, () -> read(planned(TIME)));
        assertTrue(cache.files.isEmpty());
        changed = false;
        assertArrayEquals(new byte[] {1, 2, 3}, read(planned(TIME)));
    }

    @Test
    void givesWhatAnotherUserReadOnlyToThoseWhoMayReadIt()
            throws IOException
    {
        perUser = true;
        assertArrayEquals(new byte[] {1, 2, 3}, read(planned(TIME)));
        assertArrayEquals(new byte[] {1, 2, 3}, read(planned(TIME)));
        assertEquals(3, reads, "one of all bytes, and one of a byte each time");
        denied = true;
        assertThrows(IOException.class, () -> read(planned(TIME)));
        perUser = false;
        assertArrayEquals(new byte[] {1, 2, 3}, read(planned(TIME)), "nobody is asked where all users are one");
    }

    @Test
    void tellsBucketsApart()
    {
        assertNotEquals(FileCache.key(planned("s3://a/f", TIME)), FileCache.key(planned("s3://b/f", TIME)));
    }

    @Test
    void doesNotKeepWhatMayBeWrittenAgainInTheSameTick()
    {
        assertTrue(FileCache.keeps(planned(TIME), TIME + 60_001));
        assertFalse(FileCache.keeps(planned(TIME), TIME + 60_000));
        assertFalse(FileCache.keeps(planned(TIME), TIME - 1));
        assertFalse(FileCache.keeps(planned(-1), TIME));
    }

    private static PlannedFile planned(long modifiedMillis)
    {
        return planned("s3://a/f", modifiedMillis);
    }

    private static PlannedFile planned(String uri, long modifiedMillis)
    {
        return new PlannedFile(uri, 0, 3, 3, modifiedMillis, null, null, List.of());
    }

    private byte[] read(PlannedFile planned)
            throws IOException
    {
        byte[] bytes = new byte[3];
        try (ReadableFile file = FileCache.over(cache, checked(), planned, perUser)) {
            assertEquals(3, file.size());
            file.readFully(0, bytes, 0, 3);
        }
        return bytes;
    }

    private ReadableFile checked()
    {
        return new ReadableFile()
        {
            @Override
            public long size()
            {
                return 3;
            }

            @Override
            public void readFully(long position, byte[] buffer, int offset, int length)
                    throws IOException
            {
                if (denied) {
                    throw new IOException("403");
                }
                reads++;
                System.arraycopy(stored, (int) position, buffer, offset, length);
                if (changed) {
                    throw new TrinoException(BridgeErrorCode.FILE_CHANGED, "changed");
                }
            }

            @Override
            public void close() {}
        };
    }

    /** A cache of whole files. */
    private static final class WholeFiles
            implements TrinoFileSystemCache
    {
        private final Map<String, byte[]> files = new HashMap<>();

        @Override
        public TrinoInput cacheInput(TrinoInputFile delegate, String key)
                throws IOException
        {
            if (!files.containsKey(key)) {
                byte[] bytes = new byte[(int) delegate.length()];
                delegate.newInput().readFully(0, bytes, 0, bytes.length);
                files.put(key, bytes);
            }
            byte[] bytes = files.get(key);
            return new TrinoInput()
            {
                @Override
                public void readFully(long position, byte[] buffer, int offset, int length)
                {
                    System.arraycopy(bytes, (int) position, buffer, offset, length);
                }

                @Override
                public int readTail(byte[] buffer, int offset, int length)
                {
                    throw new UnsupportedOperationException();
                }

                @Override
                public void close() {}
            };
        }

        @Override
        public TrinoInputStream cacheStream(TrinoInputFile delegate, String key)
        {
            throw new UnsupportedOperationException();
        }

        @Override
        public long cacheLength(TrinoInputFile delegate, String key)
        {
            throw new UnsupportedOperationException();
        }

        @Override
        public void expire(Location location) {}

        @Override
        public void expire(Collection<Location> locations) {}
    }
}
