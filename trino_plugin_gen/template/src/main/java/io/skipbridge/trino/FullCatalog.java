package io.skipbridge.trino;

import io.skipbridge.trino.hive.HiveCatalog;
import io.trino.spi.connector.Connector;
import io.trino.spi.connector.ConnectorContext;

import java.util.Map;
import java.util.Optional;

/** The catalog that is Trino's hive connector too. A catalog file asks for it by naming Hive's metastore. */
final class FullCatalog
{
    private FullCatalog() {}

    /** Empty: the catalog names no metastore, or the plugin was built without Hive. */
    static Optional<Connector> create(String catalog, Map<String, String> properties, ConnectorContext context)
    {
        if (properties.keySet().stream().noneMatch(name -> name.startsWith("hive.metastore")) || !built()) {
            return Optional.empty();
        }
        return Optional.of(HiveCatalog.create(catalog, properties, own -> new BridgeConnector(catalog, BridgeConfig.parse(own), context), context));
    }

    private static boolean built()
    {
        return FullCatalog.class.getClassLoader().getResource("io/trino/plugin/hive/HiveConnectorFactory.class") != null;
    }
}
