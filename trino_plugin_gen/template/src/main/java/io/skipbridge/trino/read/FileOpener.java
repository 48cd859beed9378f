package io.skipbridge.trino.read;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorSession;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;

/** Opens planned files and refuses those that are not the file the planner saw. */
public final class FileOpener
        implements Closeable
{
    private static final String LOCAL = "file://";
    private static final List<String> S3 = List.of("s3://", "s3a://", "s3n://");

    private final Optional<S3Files> s3;

    private FileOpener(Optional<S3Files> s3)
    {
        this.s3 = s3;
    }

    /** Without properties of S3 nothing of it is loaded. */
    public static FileOpener create(Map<String, String> properties, ConnectorContext context)
    {
        return new FileOpener(properties.isEmpty() ? Optional.empty() : Optional.of(S3Files.of(properties, context.getOpenTelemetry())));
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
        if (file.size() != planned.size() || !sameTime(planned, file)) {
            file.close();
            throw new TrinoException(
                    BridgeErrorCode.FILE_CHANGED,
                    "%s changed since it was planned: %d bytes at %d ms were planned, %d bytes at %d ms were found. Run the query again".formatted(
                            planned.path(), planned.size(), planned.modifiedMillis(), file.size(), file.modifiedMillis()));
        }
        return file;
    }

    private static boolean sameTime(PlannedFile planned, ReadableFile file)
    {
        if (planned.modifiedMillis() < 0 || file.modifiedMillis() < 0) {
            return true;
        }
        long grain = file.timeGrainMillis();
        return Math.floorDiv(planned.modifiedMillis(), grain) == Math.floorDiv(file.modifiedMillis(), grain);
    }

    private ReadableFile openAny(ConnectorSession session, String uri)
            throws IOException
    {
        if (uri.startsWith(LOCAL)) {
            return new LocalFile(localPath(uri));
        }
        if (S3.stream().noneMatch(uri::startsWith)) {
            throw new TrinoException(NOT_SUPPORTED, "%s: the connector reads files of file:// and s3:// only".formatted(uri));
        }
        S3Files files = s3.orElseThrow(() -> new TrinoException(
                BridgeErrorCode.INVALID_CONFIGURATION,
                "%s: this catalog has no S3 properties. Set s3.region, and s3.endpoint if the store is not AWS, in its file".formatted(uri)));
        return new RemoteFile(files.file(session.getIdentity(), uri));
    }

    private static String localPath(String uri)
    {
        return uri.substring(LOCAL.length());
    }

    @Override
    public void close()
    {
        s3.ifPresent(S3Files::close);
    }
}
