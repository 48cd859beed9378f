package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceRequest;
import org.apache.hudi.io.SeekableDataInputStream;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathFilter;
import org.apache.hudi.storage.StoragePathInfo;
import org.apache.hudi.storage.StorageSchemes;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The logs of one slice, and nothing else. Each ends where it ended when it was planned. */
final class LogStorage
        extends HoodieStorage
{
    private static final int BLOCK_BYTES = 32 << 20;

    private final URI uri;
    private final Map<String, LogBytes> logs = new HashMap<>();

    LogStorage(SliceRequest request)
    {
        super(new PlainConfiguration());
        for (int i = 0; i < request.logs().size(); i++) {
            logs.put(new StoragePath(request.logs().get(i).path()).getName(), new LogBytes(request.files(), i, request.logs().get(i).size()));
        }
        String scheme = new StoragePath(request.logs().getFirst().path()).toUri().getScheme();
        this.uri = URI.create((scheme == null ? "file" : scheme) + ":///");
    }

    /** The log with the name of this path; all logs of a slice have different names. */
    LogBytes log(StoragePath path)
            throws IOException
    {
        LogBytes log = logs.get(path.getName());
        if (log == null) {
            throw new FileNotFoundException(path + " is no log of the slice");
        }
        return log;
    }

    /** The memory of bytes that are kept of logs. */
    long bytes()
    {
        return logs.values().stream().mapToLong(LogBytes::bytes).sum();
    }

    /** Forgets the bytes that were kept of logs. */
    void forget()
    {
        logs.values().forEach(LogBytes::forget);
    }

    @Override
    public SeekableDataInputStream openSeekable(StoragePath path, int bufferSize, boolean wrapStream)
            throws IOException
    {
        return LogStream.open(log(path));
    }

    @Override
    public InputStream open(StoragePath path)
            throws IOException
    {
        return LogStream.open(log(path));
    }

    @Override
    public boolean exists(StoragePath path)
    {
        return logs.containsKey(path.getName());
    }

    @Override
    public StoragePathInfo getPathInfo(StoragePath path)
            throws IOException
    {
        return new StoragePathInfo(path, log(path).size(), false, (short) 1, BLOCK_BYTES, 0);
    }

    @Override
    public HoodieStorage newInstance(StoragePath path, StorageConfiguration<?> configuration)
    {
        return this;
    }

    @Override
    public String getScheme()
    {
        // of a store that Hudi does not know, blocks are checked as those of a file system are
        return StorageSchemes.isSchemeSupported(uri.getScheme()) ? uri.getScheme() : StorageSchemes.FILE.getScheme();
    }

    @Override
    public URI getUri()
    {
        return uri;
    }

    @Override
    public int getDefaultBlockSize(StoragePath path)
    {
        return BLOCK_BYTES;
    }

    @Override
    public int getDefaultBufferSize()
    {
        return 4_096;
    }

    @Override
    public short getDefaultReplication(StoragePath path)
    {
        return 1;
    }

    @Override
    public Object getFileSystem()
    {
        return this;
    }

    @Override
    public HoodieStorage getRawStorage()
    {
        return this;
    }

    @Override
    public OutputStream create(StoragePath path, boolean overwrite)
    {
        throw readOnly();
    }

    @Override
    public OutputStream create(StoragePath path, boolean overwrite, Integer bufferSize, Short replication, Long sizeThreshold)
    {
        throw readOnly();
    }

    @Override
    public OutputStream append(StoragePath path)
    {
        throw readOnly();
    }

    @Override
    public boolean createDirectory(StoragePath path)
    {
        throw readOnly();
    }

    @Override
    public List<StoragePathInfo> listDirectEntries(StoragePath path)
    {
        throw readOnly();
    }

    @Override
    public List<StoragePathInfo> listFiles(StoragePath path)
    {
        throw readOnly();
    }

    @Override
    public List<StoragePathInfo> listDirectEntries(StoragePath path, StoragePathFilter filter)
    {
        throw readOnly();
    }

    @Override
    public void setModificationTime(StoragePath path, long modificationTimeInMillisEpoch)
    {
        throw readOnly();
    }

    @Override
    public List<StoragePathInfo> globEntries(StoragePath pathPattern, StoragePathFilter filter)
    {
        throw readOnly();
    }

    @Override
    public boolean rename(StoragePath oldPath, StoragePath newPath)
    {
        throw readOnly();
    }

    @Override
    public boolean deleteDirectory(StoragePath path)
    {
        throw readOnly();
    }

    @Override
    public boolean deleteFile(StoragePath path)
    {
        throw readOnly();
    }

    private static UnsupportedOperationException readOnly()
    {
        return new UnsupportedOperationException("only the logs of a slice are read");
    }

    @Override
    public void close() {}
}
