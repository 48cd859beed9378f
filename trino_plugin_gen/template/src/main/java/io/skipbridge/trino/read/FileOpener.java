package io.skipbridge.trino.read;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoFileSystemFactory;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorSession;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.Map;
import java.util.Optional;

import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;

/** Opens planned files and refuses those that are not the file the planner saw. */
public final class FileOpener
        implements Closeable
{
    private static final String LOCAL = "file://";

    private final Optional<RemoteFileSystem> remote;

    FileOpener(Optional<RemoteFileSystem> remote)
    {
        this.remote = remote;
    }

    public static FileOpener create(Map<String, String> properties, ConnectorContext context)
    {
        return new FileOpener(RemoteFileSystem.load(properties, context));
    }

    /** Opens a file whose size and modification time are the planned ones; another file under the name is FILE_CHANGED, never read. */
    ReadableFile open(ConnectorSession session, PlannedFile planned)
            throws IOException
    {
        ReadableFile file;
        try {
            file = openAny(session, planned.path());
        }
        catch (NoSuchFileException | FileNotFoundException e) {
            throw new TrinoException(BridgeErrorCode.FILE_CHANGED, "%s is gone since it was planned. Run the query again".formatted(planned.path()), e);
        }
        boolean sameTime = planned.modifiedMillis() < 0 || file.modifiedMillis() < 0 || planned.modifiedMillis() == file.modifiedMillis();
        if (file.size() != planned.size() || !sameTime) {
            file.close();
            throw new TrinoException(
                    BridgeErrorCode.FILE_CHANGED,
                    "%s changed since it was planned: %d bytes at %d ms were planned, %d bytes at %d ms were found. Run the query again".formatted(
                            planned.path(), planned.size(), planned.modifiedMillis(), file.size(), file.modifiedMillis()));
        }
        return file;
    }

    private ReadableFile openAny(ConnectorSession session, String uri)
            throws IOException
    {
        if (uri.startsWith(LOCAL)) {
            return new LocalFile(localPath(uri));
        }
        RemoteFileSystem fileSystem = remote.orElseThrow(() -> new TrinoException(
                NOT_SUPPORTED,
                "%s: this build of the connector reads local files only; build it with its S3 profile to read others".formatted(uri)));
        TrinoFileSystemFactory factory = fileSystem.factory();
        return new RemoteFile(factory.create(session.getIdentity()).newInputFile(Location.of(uri)));
    }

    private static String localPath(String uri)
    {
        return uri.substring(LOCAL.length());
    }

    @Override
    public void close()
    {
        remote.ifPresent(RemoteFileSystem::close);
    }
}
