package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoInput;
import io.trino.filesystem.TrinoInputFile;
import io.trino.filesystem.TrinoInputStream;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestRemoteFile
{
    private static final byte[] OLD = {1, 2, 3, 4};
    private static final byte[] NEW = {5, 6, 7, 8};
    private static final long TIME = 1_700_000_000_123L;

    @Test
    void givesThePlannedFilesBytes()
            throws IOException
    {
        FakeStore store = new FakeStore();
        try (RemoteFile file = open(store, Store.HDFS, TIME)) {
            assertEquals(0, store.looks, "opening asks nothing");
            assertArrayEquals(new byte[] {2, 3}, read(file, 1, 2));
            assertArrayEquals(OLD, read(file, 0, 4));
        }
        assertEquals(2, store.looks, "each read is checked, also the second one of an open file");
    }

    @Test
    void refusesAFileReplacedBeforeTheRead()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile file = open(store, Store.HDFS, TIME);
        store.replace(NEW, TIME + 1);
        assertChanged(file);
    }

    @Test
    void refusesAFileReplacedWhileItWasRead()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile file = open(store, Store.HDFS, TIME);
        read(file, 0, 1);
        store.afterRead = () -> store.replace(NEW, TIME + 1);
        assertChanged(file);
    }

    @Test
    void refusesAFileReplacedBetweenTwoReads()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile file = open(store, Store.HDFS, TIME);
        read(file, 0, 2);
        store.replace(NEW, TIME + 1);
        assertChanged(file);
    }

    @Test
    void refusesAFileWrittenAgainWithinTheGrainOfTimes()
            throws IOException
    {
        FakeStore store = new FakeStore();
        store.tellsHeaders = true;
        store.etag = Optional.of("old");
        RemoteFile file = open(store, Store.S3, TIME);
        read(file, 0, 2);
        assertArrayEquals(OLD, read(file, 0, 4));
        store.replace(NEW, TIME);
        store.etag = Optional.of("new");
        assertChanged(file);
        assertArrayEquals(NEW, read(open(store, Store.S3, TIME), 0, 4));
        RemoteFile untold = open(store, Store.S3, TIME);
        read(untold, 0, 1);
        store.etag = Optional.empty();
        assertArrayEquals(NEW, read(untold, 0, 4));
        assertEquals(0, store.looks, "the headers of the replies tell all that is needed");
    }

    /** The footer is read by one request, and columns by others, ahead of their need. */
    @Test
    void refusesAFileWrittenAgainBetweenReadsOfOneSplit()
            throws IOException
    {
        FakeStore store = new FakeStore();
        store.tellsHeaders = true;
        store.etag = Optional.of("old");
        PlannedFile planned = new PlannedFile("s3://b/f", 0, 4, 4, TIME, null, null, List.of());
        AtomicReference<String> etag = new AtomicReference<>();
        assertArrayEquals(OLD, read(new RemoteFile(planned, Store.S3, store::file, false, etag), 0, 4));
        assertArrayEquals(OLD, read(new RemoteFile(planned, Store.S3, store::file, false, etag), 0, 4));
        store.replace(NEW, TIME);
        store.etag = Optional.of("new");
        assertChanged(new RemoteFile(planned, Store.S3, store::file, false, etag));
    }

    @Test
    void refusesAFileThatBecameShorterOrIsGone()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile shorter = open(store, Store.AZURE, TIME);
        store.replace(new byte[] {1}, TIME);
        assertChanged(shorter);
        RemoteFile gone = open(store, Store.GCS, TIME);
        store.replace(null, TIME);
        assertChanged(gone);
    }

    @Test
    void refusesAFileDeletedAfterTheRead()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile file = open(store, Store.HDFS, TIME);
        store.afterRead = () -> store.replace(null, TIME);
        assertChanged(file);
    }

    @Test
    void aLogMayBecomeLongerAndNothingElse()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile log = open(store, Store.HDFS, TIME, true);
        store.replace(new byte[] {1, 2, 3, 4, 5}, TIME + 1);
        assertArrayEquals(OLD, read(log, 0, 4));
        store.replace(NEW, TIME + 1);
        assertChanged(open(store, Store.HDFS, TIME, true));
        store.replace(new byte[] {1}, TIME);
        assertChanged(open(store, Store.HDFS, TIME, true));
    }

    /** A store that tells times in seconds: written again within one, with equal size. */
    @Test
    void refusesAnotherEtagOfEqualSizeAndTime()
            throws IOException
    {
        FakeStore store = new FakeStore();
        int etag = ObjectHeaders.hash("\"one\"");
        for (int planned : new int[] {etag, 0}) {
            PlannedFile file = new PlannedFile("s3://b/f", 0, 4, 4, TIME, null, null, List.of(), planned);
            for (String now : List.of("\"one\"", "\"two\"", "")) {
                store.afterRead = () -> ObjectHeaders.remember(new ObjectHeaders.Version(4, TIME / 1_000 * 1_000, Optional.of(now)));
                RemoteFile opened = new RemoteFile(file, Store.S3, store::file, false, new AtomicReference<>());
                if (planned != 0 && now.equals("\"two\"")) {
                    assertChanged(opened);
                }
                else {
                    assertArrayEquals(OLD, read(opened, 0, 4));
                }
            }
        }
        ObjectHeaders.forget();
    }

    /** Trino's client takes the first bytes of such a reply for those that it asked for. */
    @Test
    void refusesTheWholeFileInPlaceOfARange()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile file = open(store, Store.S3, TIME);
        store.afterRead = ObjectHeaders::rememberIgnoredRange;
        IOException problem = assertThrows(IOException.class, () -> read(file, 2, 2));
        assertTrue(problem.getMessage().contains("Range"));
        store.afterRead = () -> {};
        assertArrayEquals(new byte[] {3, 4}, read(file, 2, 2));
    }

    @Test
    void comparesTimesAsExactlyAsTheStoreTellsThem()
            throws IOException
    {
        FakeStore store = new FakeStore();
        store.replace(OLD, TIME / 1_000 * 1_000);
        read(open(store, Store.AZURE, TIME), 0, 4);
        assertChanged(open(store, Store.HDFS, TIME));
        read(open(store, Store.HDFS, -1), 0, 4);
    }

    @Test
    void keepsTheErrorOfAReadOfAnUnchangedFile()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile file = open(store, Store.HDFS, TIME);
        store.afterRead = () -> {
            throw new IllegalStateException("the data node is away");
        };
        IOException problem = assertThrows(IOException.class, () -> read(file, 0, 4));
        assertEquals("java.lang.IllegalStateException: the data node is away", problem.getMessage());
        store.afterRead = () -> {};
        assertThrows(EOFException.class, () -> read(file, 2, 4));
    }

    @Test
    void saysThatAStoreCannotBeAsked()
            throws IOException
    {
        FakeStore store = new FakeStore();
        RemoteFile file = open(store, Store.HDFS, TIME);
        store.beforeLook = () -> {
            throw new IllegalStateException("the pool is shut down");
        };
        IOException problem = assertThrows(IOException.class, () -> read(file, 0, 4));
        assertEquals("java.lang.IllegalStateException: the pool is shut down", problem.getMessage());
        assertThrows(EOFException.class, () -> read(file, 2, 4), "the first problem is told");
    }

    private static void assertChanged(RemoteFile file)
    {
        TrinoException problem = assertThrows(TrinoException.class, () -> read(file, 0, 4));
        assertEquals(BridgeErrorCode.FILE_CHANGED.toErrorCode(), problem.getErrorCode());
    }

    private static byte[] read(RemoteFile file, long position, int length)
            throws IOException
    {
        byte[] bytes = new byte[length];
        file.readFully(position, bytes, 0, length);
        return bytes;
    }

    private static RemoteFile open(FakeStore store, Store kind, long plannedMillis)
    {
        return open(store, kind, plannedMillis, false);
    }

    private static RemoteFile open(FakeStore store, Store kind, long plannedMillis, boolean mayGrow)
    {
        PlannedFile planned = new PlannedFile("hdfs://name/f", 0, 4, 4, plannedMillis, null, null, List.of());
        return new RemoteFile(planned, kind, store::file, mayGrow, new AtomicReference<>());
    }

    /** One file that may be replaced at any time; objects of it remember what they saw first, as Trino's do. */
    private static final class FakeStore
    {
        private byte[] content = OLD;
        private long millis = TIME;
        private Optional<String> etag = Optional.empty();
        private boolean tellsHeaders;
        private int looks;
        private Runnable afterRead = () -> {};
        private Runnable beforeLook = () -> {};

        void replace(byte[] content, long millis)
        {
            this.content = content;
            this.millis = millis;
        }

        private byte[] present()
                throws IOException
        {
            if (content == null) {
                throw new FileNotFoundException("hdfs://name/f");
            }
            return content;
        }

        TrinoInputFile file()
        {
            return new TrinoInputFile()
            {
                private long length = -1;
                private long time;

                private void look()
                        throws IOException
                {
                    beforeLook.run();
                    if (length < 0) {
                        length = present().length;
                        time = millis;
                        looks++;
                    }
                }

                @Override
                public TrinoInput newInput()
                        throws IOException
                {
                    present();
                    return new TrinoInput()
                    {
                        @Override
                        public void readFully(long position, byte[] buffer, int offset, int length)
                                throws IOException
                        {
                            byte[] bytes = present();
                            if (position + length > bytes.length) {
                                throw new EOFException("too short");
                            }
                            System.arraycopy(bytes, (int) position, buffer, offset, length);
                            if (tellsHeaders) {
                                ObjectHeaders.remember(new ObjectHeaders.Version(bytes.length, millis / 1_000 * 1_000, etag));
                            }
                            afterRead.run();
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
                public TrinoInputStream newStream()
                {
                    throw new UnsupportedOperationException();
                }

                @Override
                public long length()
                        throws IOException
                {
                    look();
                    return length;
                }

                @Override
                public Instant lastModified()
                        throws IOException
                {
                    look();
                    return Instant.ofEpochMilli(time);
                }

                @Override
                public boolean exists()
                {
                    return content != null;
                }

                @Override
                public Location location()
                {
                    return Location.of("hdfs://name/f");
                }
            };
        }
    }
}
