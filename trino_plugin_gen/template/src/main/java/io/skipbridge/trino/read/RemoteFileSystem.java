package io.skipbridge.trino.read;

import io.trino.filesystem.TrinoFileSystemFactory;
import io.trino.spi.connector.ConnectorContext;

import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;

/** A file system for URIs that are not local; found as a service, so that a build without it stays small. */
public interface RemoteFileSystem
{
    /** Makes the file system of a catalog from those of its properties that are not the connector's own. */
    interface Provider
    {
        RemoteFileSystem create(Map<String, String> properties, ConnectorContext context);
    }

    TrinoFileSystemFactory factory();

    void close();

    static Optional<RemoteFileSystem> load(Map<String, String> properties, ConnectorContext context)
    {
        return ServiceLoader.load(Provider.class, RemoteFileSystem.class.getClassLoader())
                .findFirst()
                .map(provider -> provider.create(properties, context));
    }
}
