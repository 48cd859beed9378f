package io.skipbridge.trino;

import io.airlift.units.Duration;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.session.PropertyMetadata;

import java.util.List;

import static io.trino.plugin.base.session.PropertyMetadataUtil.durationProperty;
import static io.trino.spi.session.PropertyMetadata.booleanProperty;

/** The session properties, with the catalog's values as their defaults. */
public final class BridgeSession
{
    private static final String PRUNING_ENABLED = "pruning_enabled";
    private static final String DYNAMIC_FILTER_WAIT = "dynamic_filter_wait";

    private BridgeSession() {}

    static List<PropertyMetadata<?>> properties(BridgeConfig config)
    {
        return List.of(
                booleanProperty(PRUNING_ENABLED, "Skip files that the planner proves empty for the query", config.pruningEnabled(), false),
                durationProperty(DYNAMIC_FILTER_WAIT, "Longest wait for join filters before files are planned", config.dynamicFilterWait(), false));
    }

    public static boolean pruningEnabled(ConnectorSession session)
    {
        return session.getProperty(PRUNING_ENABLED, Boolean.class);
    }

    public static long dynamicFilterWaitMillis(ConnectorSession session)
    {
        return session.getProperty(DYNAMIC_FILTER_WAIT, Duration.class).toMillis();
    }
}
