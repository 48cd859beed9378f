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
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * What Trino's module of file systems makes of its properties. They are checked at once. The clients are made at the first use, which a coordinator that
 * does no work only comes to where it places splits by the workers' caches.
 */
final class TrinoModule
        implements Closeable
{
    private static final Pattern SECRET = Pattern.compile("key|secret|password|token|credential");
    // Shorter values are switches and names, which are parts of other words.
    private static final int SECRET_LENGTH = 6;

    private final Map<String, String> properties;
    private final String catalog;
    private final ConnectorContext context;
    private Optional<Bootstrap> checked;
    private Injector injector;
    private boolean closed;

    TrinoModule(Map<String, String> properties, String catalog, ConnectorContext context)
    {
        this.properties = properties;
        this.catalog = catalog;
        this.context = context;
        this.checked = Optional.of(check());
    }

    private Bootstrap check()
    {
        try (ThreadContextClassLoader _ = new ThreadContextClassLoader(TrinoModule.class.getClassLoader())) {
            Bootstrap bootstrap = new Bootstrap(
                    new MBeanModule(),
                    new MBeanServerModule(),
                    new ConnectorObjectNameGeneratorModule("io.trino.filesystem", "trino.filesystem"),
                    binder -> bindContext(binder, catalog, context),
                    StorageModules.fileSystems(catalog, context))
                    .doNotInitializeLogging()
                    .quiet()
                    .setRequiredConfigurationProperties(properties);
            bootstrap.configure();
            return bootstrap;
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

    synchronized <T> T get(Class<T> type)
    {
        if (closed) {
            throw new TrinoException(BridgeErrorCode.FILE_UNREADABLE, "The catalog %s was dropped while the query ran".formatted(catalog));
        }
        if (injector == null) {
            // a bootstrap serves for one attempt; what failed or was interrupted then may work now
            Bootstrap bootstrap = checked.orElseGet(this::check);
            checked = Optional.empty();
            try (ThreadContextClassLoader _ = new ThreadContextClassLoader(TrinoModule.class.getClassLoader())) {
                injector = bootstrap.initialize();
            }
            catch (RuntimeException e) {
                throw invalid("The file systems of this catalog cannot be made: " + masked(String.valueOf(e.getMessage()), properties));
            }
        }
        return injector.getInstance(type);
    }

    /** The message without values in quotes or brackets, and without what may be a secret anywhere. */
    static String masked(String message, Map<String, String> properties)
    {
        String masked = message;
        for (Map.Entry<String, String> property : properties.entrySet()) {
            String value = property.getValue();
            masked = value.isEmpty() ? masked : masked.replace("'" + value + "'", "'***'").replace("[" + value + "]", "[***]");
            if (value.length() >= SECRET_LENGTH && SECRET.matcher(property.getKey()).find()) {
                masked = masked.replace(value, "***");
            }
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
        closed = true;
        if (injector != null) {
            injector.getInstance(LifeCycleManager.class).stop();
        }
    }
}
