package io.skipbridge.trino.read.storage;

import com.google.inject.ConfigurationException;
import io.airlift.configuration.ConfigPropertyMetadata;
import io.airlift.configuration.ConfigurationFactory;
import io.opentelemetry.api.OpenTelemetry;
import io.skipbridge.trino.BridgeErrorCode;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoInputFile;
import io.trino.filesystem.s3.S3FileSystemConfig;
import io.trino.filesystem.s3.S3FileSystemFactory;
import io.trino.filesystem.s3.S3FileSystemStats;
import io.trino.spi.TrinoException;
import io.trino.spi.classloader.ThreadContextClassLoader;
import io.trino.spi.security.ConnectorIdentity;

import java.io.Closeable;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** Opens the S3 objects of a catalog with Trino's file system. The client is made for the first of them. */
final class S3Files
        implements Closeable
{
    private final S3FileSystemConfig config;
    private final OpenTelemetry telemetry;
    private S3FileSystemFactory factory;

    private S3Files(S3FileSystemConfig config, OpenTelemetry telemetry)
    {
        this.config = config;
        this.telemetry = telemetry;
    }

    /** Checks the properties, which are those of Trino's own connectors. */
    static S3Files of(Map<String, String> properties, OpenTelemetry telemetry)
    {
        ConfigurationFactory parser = new ConfigurationFactory(properties);
        S3FileSystemConfig config;
        try {
            config = parser.build(S3FileSystemConfig.class);
        }
        catch (ConfigurationException e) {
            // the message has neither values nor the cause, since both may hold a secret
            String problems = e.getErrorMessages().stream().map(problem -> masked(problem.getMessage(), properties)).collect(Collectors.joining("; "));
            throw invalid(problems);
        }
        Set<String> unknown = new TreeSet<>(properties.keySet());
        unknown.removeAll(parser.getUsedProperties().stream().map(ConfigPropertyMetadata::name).toList());
        if (!unknown.isEmpty()) {
            throw invalid("Unknown catalog property '%s'; the s3.* properties are those of Trino's S3 file system, without s3.security-mapping".formatted(unknown.iterator().next()));
        }
        if ((config.getAwsAccessKey() == null) != (config.getAwsSecretKey() == null)) {
            throw invalid("s3.aws-access-key and s3.aws-secret-key go together; without both the default AWS credential chain is used");
        }
        return new S3Files(config, telemetry);
    }

    TrinoInputFile file(ConnectorIdentity identity, String uri)
    {
        S3FileSystemFactory client = factory();
        try {
            return client.create(identity).newInputFile(Location.of(uri));
        }
        catch (IllegalArgumentException | IllegalStateException e) {
            throw new TrinoException(BridgeErrorCode.FILE_UNREADABLE, "%s is no name of an S3 object: %s".formatted(uri, e.getMessage()), e);
        }
    }

    private synchronized S3FileSystemFactory factory()
    {
        if (factory == null) {
            try (ThreadContextClassLoader _ = new ThreadContextClassLoader(S3Files.class.getClassLoader())) {
                factory = new S3FileSystemFactory(telemetry, config, new S3FileSystemStats());
            }
            catch (RuntimeException e) {
                throw new TrinoException(BridgeErrorCode.INVALID_CONFIGURATION, "The S3 client of this catalog cannot be made: " + e.getMessage(), e);
            }
        }
        return factory;
    }

    private static String masked(String message, Map<String, String> properties)
    {
        String masked = message;
        for (String value : properties.values()) {
            masked = value.isEmpty() ? masked : masked.replace("'" + value + "'", "'***'");
        }
        return masked;
    }

    private static TrinoException invalid(String message)
    {
        return new TrinoException(BridgeErrorCode.INVALID_CONFIGURATION, message);
    }

    @Override
    public synchronized void close()
    {
        if (factory != null) {
            factory.destroy();
        }
    }
}
