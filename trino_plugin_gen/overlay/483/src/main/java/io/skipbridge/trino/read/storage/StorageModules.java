package io.skipbridge.trino.read.storage;

import com.google.inject.Module;
import io.skipbridge.trino.split.SplitPlacement;
import io.trino.filesystem.manager.FileSystemModule;
import io.trino.spi.connector.ConnectorContext;

import java.util.List;

/** Trino's module of file systems, where it differs between families of releases. */
final class StorageModules
{
    private StorageModules() {}

    static Module fileSystems(String catalog, ConnectorContext context)
    {
        return new FileSystemModule(catalog, context, false);
    }

    /** The engine itself finds the workers for a key. */
    static SplitPlacement placement(TrinoModule cache)
    {
        return _ -> List.of();
    }

    /** The property that switches the store on in this release. */
    static String enabled(Store store)
    {
        return store.switches().getLast();
    }
}
