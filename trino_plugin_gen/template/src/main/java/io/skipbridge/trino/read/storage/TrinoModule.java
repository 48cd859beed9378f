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
import io.trino.plugin.base.jmx.ConnectorObjectNameGeneratorModule;
import io.trino.plugin.base.jmx.MBeanServerModule;
import io.trino.spi.NodeManager;
import io.trino.spi.TrinoException;
import io.trino.spi.catalog.CatalogName;
import io.trino.spi.classloader.ThreadContextClassLoader;
import io.trino.spi.connector.ConnectorContext;
import org.weakref.jmx.guice.MBeanModule;

import java.io.Closeable;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What Trino's module of file systems makes of its properties. They are checked at once. The clients are made at the first use, which a coordinator that
 * does no work never comes to.
 */
final class TrinoModule
        implements Closeable
{
    private final Map<String, String> properties;
    private final Bootstrap bootstrap;
    private Injector injector;

    TrinoModule(Map<String, String> properties, String catalog, ConnectorContext context)
    {
        this.properties = properties;
        try (ThreadContextClassLoader _ = new ThreadContextClassLoader(TrinoModule.class.getClassLoader())) {
            this.bootstrap = new Bootstrap(
                    new MBeanModule(),
                    new MBeanServerModule(),
                    new ConnectorObjectNameGeneratorModule("io.trino.filesystem", "trino.filesystem"),
                    binder -> bindContext(binder, catalog, context),
                    StorageModules.fileSystems(catalog, context))
                    .doNotInitializeLogging()
                    .quiet()
                    .setRequiredConfigurationProperties(properties);
            bootstrap.configure();
        }
        catch (ApplicationConfigurationException e) {
            // the message has neither values nor the cause, since both may hold a secret
            throw invalid(masked(e.getErrors().stream().map(Message::getMessage).distinct().collect(Collectors.joining("; "))));
        }
    }

    private static void bindContext(Binder binder, String catalog, ConnectorContext context)
    {
        binder.bind(CatalogName.class).toInstance(new CatalogName(catalog));
        binder.bind(NodeManager.class).toInstance(context.getNodeManager());
        binder.bind(OpenTelemetry.class).toInstance(context.getOpenTelemetry());
        binder.bind(Tracer.class).toInstance(context.getTracer());
    }

    synchronized <T> T get(Class<T> type)
    {
        if (injector == null) {
            try (ThreadContextClassLoader _ = new ThreadContextClassLoader(TrinoModule.class.getClassLoader())) {
                injector = bootstrap.initialize();
            }
            catch (RuntimeException e) {
                throw invalid("The file systems of this catalog cannot be made: " + masked(String.valueOf(e.getMessage())));
            }
        }
        return injector.getInstance(type);
    }

    private String masked(String message)
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
        if (injector != null) {
            injector.getInstance(LifeCycleManager.class).stop();
        }
    }
}
