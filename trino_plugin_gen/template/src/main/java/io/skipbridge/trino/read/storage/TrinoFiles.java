package io.skipbridge.trino.read.storage;

import com.google.inject.Binder;
import com.google.inject.Injector;
import com.google.inject.spi.Message;
import io.airlift.bootstrap.ApplicationConfigurationException;
import io.airlift.bootstrap.Bootstrap;
import io.airlift.bootstrap.LifeCycleManager;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.Tracer;
import io.skipbridge.trino.BridgeErrorCode;
import io.trino.filesystem.Location;
import io.trino.filesystem.TrinoFileSystemFactory;
import io.trino.filesystem.TrinoInputFile;
import io.trino.filesystem.manager.FileSystemModule;
import io.trino.plugin.base.jmx.ConnectorObjectNameGeneratorModule;
import io.trino.plugin.base.jmx.MBeanServerModule;
import io.trino.spi.NodeManager;
import io.trino.spi.TrinoException;
import io.trino.spi.catalog.CatalogName;
import io.trino.spi.classloader.ThreadContextClassLoader;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.security.ConnectorIdentity;
import org.weakref.jmx.guice.MBeanModule;

import java.io.Closeable;
import java.io.File;
import java.net.URISyntaxException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Files of the stores that Trino's own file systems read, under Trino's own properties. The properties are checked at once. The clients are made for
 * the first file, which a coordinator that does no work never opens.
 */
final class TrinoFiles
        implements Closeable
{
    private final Set<Store> stores;
    private final Map<String, String> properties;
    private final Bootstrap bootstrap;
    private LifeCycleManager lifeCycle;
    private TrinoFileSystemFactory factory;

    private TrinoFiles(Set<Store> stores, Map<String, String> properties, Bootstrap bootstrap)
    {
        this.stores = stores;
        this.properties = properties;
        this.bootstrap = bootstrap;
    }

    static TrinoFiles of(Set<Store> stores, Map<String, String> properties, String catalog, ConnectorContext context)
    {
        stores.forEach(TrinoFiles::requireBuiltFor);
        if (stores.contains(Store.S3) && properties.containsKey("s3.aws-access-key") != properties.containsKey("s3.aws-secret-key")) {
            throw invalid("s3.aws-access-key and s3.aws-secret-key go together; without both the default AWS credential chain is used");
        }
        Map<String, String> all = new HashMap<>(properties);
        stores.forEach(store -> all.put(StorageModules.enabled(store), "true"));
        try (ThreadContextClassLoader _ = new ThreadContextClassLoader(TrinoFiles.class.getClassLoader())) {
            Bootstrap bootstrap = new Bootstrap(
                    new MBeanModule(),
                    new MBeanServerModule(),
                    new ConnectorObjectNameGeneratorModule("io.trino.filesystem", "trino.filesystem"),
                    binder -> bindContext(binder, catalog, context),
                    StorageModules.fileSystems(catalog, context))
                    .doNotInitializeLogging()
                    .quiet()
                    .setRequiredConfigurationProperties(all);
            bootstrap.configure();
            return new TrinoFiles(stores, properties, bootstrap);
        }
        catch (ApplicationConfigurationException e) {
            // the message has neither values nor the cause, since both may hold a secret
            throw invalid(masked(e.getErrors().stream().map(Message::getMessage).distinct().collect(Collectors.joining("; ")), properties));
        }
    }

    private static void bindContext(Binder binder, String catalog, ConnectorContext context)
    {
        binder.bind(CatalogName.class).toInstance(new CatalogName(catalog));
        binder.bind(NodeManager.class).toInstance(context.getNodeManager());
        binder.bind(OpenTelemetry.class).toInstance(context.getOpenTelemetry());
        binder.bind(Tracer.class).toInstance(context.getTracer());
    }

    boolean reads(Store store)
    {
        // Hadoop's file systems read what no other one does
        return stores.contains(store) || stores.contains(Store.HDFS);
    }

    /** A file whose length and time are not known yet: each one asks for them anew. */
    TrinoInputFile file(ConnectorIdentity identity, String uri)
    {
        TrinoFileSystemFactory made = factory();
        try {
            return made.create(identity).newInputFile(Location.of(uri));
        }
        catch (IllegalArgumentException | IllegalStateException e) {
            throw new TrinoException(BridgeErrorCode.FILE_UNREADABLE, "%s is no name of a file that Trino can read: %s".formatted(uri, e.getMessage()), e);
        }
    }

    private synchronized TrinoFileSystemFactory factory()
    {
        if (factory == null) {
            try (ThreadContextClassLoader _ = new ThreadContextClassLoader(TrinoFiles.class.getClassLoader())) {
                Injector injector = bootstrap.initialize();
                lifeCycle = injector.getInstance(LifeCycleManager.class);
                factory = injector.getInstance(TrinoFileSystemFactory.class);
            }
            catch (RuntimeException e) {
                throw invalid("The file systems of this catalog cannot be made: " + masked(String.valueOf(e.getMessage()), properties));
            }
        }
        return factory;
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

    private static String masked(String message, Map<String, String> properties)
    {
        String masked = message;
        for (String value : properties.values()) {
            masked = value.isEmpty() ? masked : masked.replace("'" + value + "'", "'***'").replace("[" + value + "]", "[***]");
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
        if (lifeCycle != null) {
            lifeCycle.stop();
        }
    }
}
