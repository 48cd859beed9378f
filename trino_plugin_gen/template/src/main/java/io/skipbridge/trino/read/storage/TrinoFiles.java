package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoFileSystemFactory;
import io.trino.filesystem.TrinoInputFile;
import io.trino.filesystem.manager.FileSystemModule;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.security.ConnectorIdentity;

import java.io.Closeable;
import java.io.File;
import java.net.URISyntaxException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Files of the stores that Trino's own file systems read, under Trino's own properties.
 */
final class TrinoFiles
        implements Closeable
{
    private static final Pattern PER_USER = Pattern.compile("security-mapping|impersonation\\.enabled$|use-access-token$");

    private final Set<Store> stores;
    private final boolean tellsUsersApart;
    private final TrinoModule module;

    private TrinoFiles(Set<Store> stores, boolean tellsUsersApart, TrinoModule module)
    {
        this.stores = stores;
        this.tellsUsersApart = tellsUsersApart;
        this.module = module;
    }

    static TrinoFiles of(Set<Store> stores, Map<String, String> properties, String catalog, ConnectorContext context)
    {
        stores.forEach(TrinoFiles::requireBuiltFor);
        if (stores.contains(Store.S3) && properties.containsKey("s3.aws-access-key") != properties.containsKey("s3.aws-secret-key")) {
            throw invalid("s3.aws-access-key and s3.aws-secret-key go together; without both the default AWS credential chain is used");
        }
        Map<String, String> all = new HashMap<>(properties);
        stores.forEach(store -> all.put(StorageModules.enabled(store), "true"));
        return new TrinoFiles(stores, tellsUsersApart(properties), new TrinoModule(all, catalog, context));
    }

    /** Whether files are read in the name of the query's user: by a mapping of users, by impersonation or by the user's own token. */
    static boolean tellsUsersApart(Map<String, String> properties)
    {
        return properties.entrySet().stream().anyMatch(property ->
                !property.getValue().strip().equalsIgnoreCase("false")
                        && (PER_USER.matcher(property.getKey()).find() || property.getValue().strip().equalsIgnoreCase("access_token")));
    }

    /** Whether the stores may refuse to one user what another one may read. */
    boolean tellsUsersApart()
    {
        return tellsUsersApart;
    }

    boolean reads(Store store)
    {
        // Hadoop's file systems read what no other one does
        return stores.contains(store) || stores.contains(Store.HDFS);
    }

    /** A file whose length and time are not known yet: each one asks for them anew. */
    TrinoInputFile file(ConnectorIdentity identity, String uri)
    {
        TrinoFileSystemFactory made = module.get(TrinoFileSystemFactory.class);
        try {
            return made.create(identity).newInputFile(Location.of(uri));
        }
        catch (IllegalArgumentException | IllegalStateException e) {
            throw new TrinoException(BridgeErrorCode.FILE_UNREADABLE, "%s is no name of a file that Trino can read: %s".formatted(uri, e.getMessage()), e);
        }
    }

    /** The plugin holds the clients of S3, and of other stores if it was built for them. */
    private static void requireBuiltFor(Store store)
    {
        String remedy = "Build the plugin with --storage %s".formatted(store.option());
        if (store == Store.HDFS) {
            File directory = new File(home(), "hdfs");
            if (!directory.isDirectory()) {
                throw invalid("%s: the plugin has no %s. %s, or link this name to plugin/hive/hdfs of the same Trino".formatted(
                        StorageModules.enabled(store), directory, remedy));
            }
            return;
        }
        try {
            Class.forName(store.module(), false, TrinoFiles.class.getClassLoader());
        }
        catch (ClassNotFoundException e) {
            throw invalid("%s: the plugin was built without %s. %s".formatted(StorageModules.enabled(store), store.title(), remedy));
        }
    }

    private static File home()
    {
        try {
            return new File(FileSystemModule.class.getProtectionDomain().getCodeSource().getLocation().toURI()).getParentFile();
        }
        catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    private static TrinoException invalid(String message)
    {
        return new TrinoException(BridgeErrorCode.INVALID_CONFIGURATION, message);
    }

    @Override
    public void close()
    {
        module.close();
    }
}
