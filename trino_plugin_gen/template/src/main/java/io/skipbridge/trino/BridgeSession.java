package io.skipbridge.trino;

import io.airlift.units.Duration;
import io.skipbridge.client.ChosenSegments;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.session.PropertyMetadata;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

import static io.trino.plugin.base.session.PropertyMetadataUtil.durationProperty;
import static io.trino.spi.StandardErrorCode.INVALID_SESSION_PROPERTY;
import static io.trino.spi.session.PropertyMetadata.booleanProperty;
import static io.trino.spi.session.PropertyMetadata.stringProperty;

/** The session properties, with the catalog's values as their defaults. */
public final class BridgeSession
{
    private static final String PRUNING_ENABLED = "pruning_enabled";
    private static final String DYNAMIC_FILTER_WAIT = "dynamic_filter_wait";
    private static final String LIMIT_PRUNING_ENABLED = "limit_pruning_enabled";
    private static final String TOP_N_PRUNING_ENABLED = "top_n_pruning_enabled";
    private static final String METADATA_ANSWERS_ENABLED = "metadata_answers_enabled";
    private static final String METADATA_WAIT = "metadata_wait";
    private static final String STATISTICS_ENABLED = "statistics_enabled";
    private static final String READ_OPTIMIZED = "read_optimized";
    private static final String SEGMENTS = "segments";

    private BridgeSession() {}

    static List<PropertyMetadata<?>> properties(BridgeConfig config)
    {
        return List.of(
                booleanProperty(PRUNING_ENABLED, "Skip files that the planner proves empty for the query", config.pruningEnabled(), false),
                durationProperty(DYNAMIC_FILTER_WAIT, "How long a scan waits for all of its dynamic filters; unset, it waits only while the planner expects a gain", config.dynamicFilterWait().orElse(null), false),
                booleanProperty(LIMIT_PRUNING_ENABLED, "LIMIT reads only files that are known to suffice", true, false),
                booleanProperty(TOP_N_PRUNING_ENABLED, "ORDER BY with LIMIT reads only files that may hold one of the first rows", true, false),
                booleanProperty(METADATA_ANSWERS_ENABLED, "Answer count, min and max, and drop filters, where statistics are exact", true, false),
                durationProperty(METADATA_WAIT, "Longest wait for the planner's statistics while a query is planned", Duration.valueOf("2s"), false),
                booleanProperty(STATISTICS_ENABLED, "Give the optimiser table and column statistics", true, false),
                booleanProperty(READ_OPTIMIZED, "Read only the base files of merge-on-read tables, without what their logs changed", false, false),
                stringProperty(SEGMENTS, "Read only these segments of tables of segments, such as db.t:3,5;db.u:0.1", "", BridgeSession::chosenSegments, false));
    }

    public static boolean pruningEnabled(ConnectorSession session)
    {
        return session.getProperty(PRUNING_ENABLED, Boolean.class);
    }

    public static boolean limitPruningEnabled(ConnectorSession session)
    {
        return pruningEnabled(session) && session.getProperty(LIMIT_PRUNING_ENABLED, Boolean.class);
    }

    public static boolean topNPruningEnabled(ConnectorSession session)
    {
        return pruningEnabled(session) && session.getProperty(TOP_N_PRUNING_ENABLED, Boolean.class);
    }

    public static boolean metadataAnswersEnabled(ConnectorSession session)
    {
        return pruningEnabled(session) && session.getProperty(METADATA_ANSWERS_ENABLED, Boolean.class);
    }

    public static int metadataWaitMillis(ConnectorSession session)
    {
        return (int) Math.min(60_000, session.getProperty(METADATA_WAIT, Duration.class).toMillis());
    }

    public static boolean statisticsEnabled(ConnectorSession session)
    {
        return session.getProperty(STATISTICS_ENABLED, Boolean.class);
    }

    public static boolean readOptimized(ConnectorSession session)
    {
        return session.getProperty(READ_OPTIMIZED, Boolean.class);
    }

    /** The segments of a table that are read, separated by commas; empty: all. */
    public static Optional<String> segments(ConnectorSession session, SchemaTableName table)
    {
        return Optional.ofNullable(chosenSegments(session.getProperty(SEGMENTS, String.class)).get(table.toString()));
    }

    static Map<String, String> chosenSegments(String text)
    {
        try {
            return ChosenSegments.parse(text);
        }
        catch (IllegalArgumentException e) {
            throw new TrinoException(INVALID_SESSION_PROPERTY, e.getMessage(), e);
        }
    }

    public static OptionalLong dynamicFilterWaitMillis(ConnectorSession session)
    {
        Duration wait = session.getProperty(DYNAMIC_FILTER_WAIT, Duration.class);
        return wait == null ? OptionalLong.empty() : OptionalLong.of(wait.toMillis());
    }
}
