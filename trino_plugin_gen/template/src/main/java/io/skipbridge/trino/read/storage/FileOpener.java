package io.skipbridge.trino.read.storage;

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

/** Opens planned files, and refuses a file that changed since it was planned. */
public final class FileOpener
        implements Closeable
{
    private static final String LOCAL = "file://";
    private static final List<String> S3 = List.of("s3://", "s3a://", "s3n://");

    private final Optional<S3Files> s3;

    private final ReadBudget budget = new ReadBudget();

    private FileOpener(Optional<S3Files> s3)
    {
        this.s3 = s3;
    }

    /** Without S3 properties no class of the S3 client is loaded. */
    public static FileOpener create(Optional<Map<String, String>> s3Properties, ConnectorContext context)
    {
        return new FileOpener(s3Properties.map(properties -> S3Files.of(properties, context.getOpenTelemetry())));
    }

    /** Whether a read of the file is a request to another machine. */
    public boolean remote(PlannedFile planned)
    {
        return !planned.path().startsWith(LOCAL);
    }

    /** What scans may read ahead. */
    public ReadBudget budget()
    {
        return budget;
    }

    /** Opens the planned file. Another file under its name is FILE_CHANGED, at once or when it is read. */
    public ReadableFile open(ConnectorSession session, PlannedFile planned)
            throws IOException
    {
        String uri = planned.path();
        if (uri.startsWith(LOCAL)) {
            return openLocal(planned);
        }
        if (S3.stream().noneMatch(uri::startsWith)) {
            throw new TrinoException(NOT_SUPPORTED, "%s: the connector reads files of file:// and s3:// only".formatted(uri));
        }
        S3Files files = s3.orElseThrow(() -> new TrinoException(
                BridgeErrorCode.INVALID_CONFIGURATION,
                "%s: this catalog has no S3 properties. Set fs.native-s3.enabled=true, s3.region, and s3.endpoint if the store is not AWS, in its file".formatted(uri)));
        return new RemoteFile(planned, files.file(session.getIdentity(), uri));
    }

    private static ReadableFile openLocal(PlannedFile planned)
            throws IOException
    {
        LocalFile file;
        try {
            file = new LocalFile(planned.path().substring(LOCAL.length()));
        }
        catch (NoSuchFileException | FileNotFoundException e) {
            throw FileVersions.gone(planned, e);
        }
        try {
            FileVersions.check(planned, file.size(), file.modifiedMillis(), 1);
        }
        catch (TrinoException e) {
            file.close();
            throw e;
        }
        return file;
    }

    @Override
    public void close()
    {
        s3.ifPresent(S3Files::close);
    }
}
