package io.skipbridge.trino.read.storage;

import com.google.inject.Module;
import io.trino.filesystem.manager.FileSystemModule;
import io.trino.spi.connector.ConnectorContext;

/** Trino's module of file systems, where it differs between families of releases. */
final class StorageModules
{
    private StorageModules() {}

    static Module fileSystems(String catalog, ConnectorContext context)
    {
        return new FileSystemModule(catalog, context.getNodeManager(), context.getOpenTelemetry(), false);
    }

    /** The property that switches the store on in this release. */
    static String enabled(Store store)
    {
        return store.switches().getFirst();
    }
}
