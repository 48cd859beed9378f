package io.skipbridge.trino;

import io.trino.plugin.base.Versions;
import io.trino.spi.connector.Connector;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorFactory;

import java.util.Map;

public class BridgeConnectorFactory
        implements ConnectorFactory
{
    @Override
    public String getName()
    {
        return ConnectorName.NAME;
    }

    @Override
    public Connector create(String catalogName, Map<String, String> properties, ConnectorContext context)
    {
        // without this check a plugin of another release loads, then fails at query time with an AbstractMethodError
        Versions.checkStrictSpiVersionMatch(context, this);
        return FullCatalog.create(catalogName, properties, context).orElseGet(() -> new BridgeConnector(catalogName, BridgeConfig.parse(properties), context));
    }
}
