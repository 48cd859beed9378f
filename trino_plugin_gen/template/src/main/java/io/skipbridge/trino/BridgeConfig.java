package io.skipbridge.trino;

import io.airlift.units.Duration;
import io.skipbridge.trino.wire.PlannerAddress;
import io.trino.spi.TrinoException;
import org.joda.time.DateTimeZone;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TimeZone;
import java.util.TreeMap;

import static io.skipbridge.trino.BridgeErrorCode.INVALID_CONFIGURATION;

/** The catalog's properties. An unknown property is an error that names the nearest known one. */
public record BridgeConfig(
        List<PlannerAddress> planners,
        java.time.Duration plannerTimeout,
        boolean pruningEnabled,
        Optional<Duration> dynamicFilterWait,
        String timeZone,
        boolean orcByName,
        String orcTimeZone,
        StorageProperties storage)
{
    public static final String PLANNER = "skipbridge.planner";
    static final String PLANNER_TIMEOUT = "skipbridge.planner.timeout";
    static final String PRUNING_ENABLED = "skipbridge.pruning-enabled";
    static final String DYNAMIC_FILTER_WAIT = "skipbridge.dynamic-filter-wait";
    static final String TIME_ZONE = "skipbridge.parquet.time-zone";
    static final String HIVE_TIME_ZONE = "hive.parquet.time-zone";
    static final String ORC_TIME_ZONE = "skipbridge.orc.time-zone";
    static final String HIVE_ORC_TIME_ZONE = "hive.orc.time-zone";
    static final String ORC_BY_NAME = "skipbridge.orc.use-column-names";
    static final String HIVE_ORC_BY_NAME = "hive.orc.use-column-names";
    private static final List<String> NAMES = List.of(
            PLANNER, PLANNER_TIMEOUT, PRUNING_ENABLED, DYNAMIC_FILTER_WAIT, TIME_ZONE, HIVE_TIME_ZONE, ORC_TIME_ZONE, HIVE_ORC_TIME_ZONE, ORC_BY_NAME, HIVE_ORC_BY_NAME);
    private static final String DEFAULT_PLANNER = "127.0.0.1:9527";

    static BridgeConfig parse(Map<String, String> properties)
    {
        Map<String, String> storage = new TreeMap<>();
        properties.forEach((name, value) -> {
            if (StorageProperties.covers(name)) {
                storage.put(name, value);
            }
            else if (!NAMES.contains(name)) {
                throw invalid("Unknown catalog property '%s'; %s".formatted(name, hint(name)));
            }
        });
        return new BridgeConfig(
                planners(properties.getOrDefault(PLANNER, DEFAULT_PLANNER)),
                java.time.Duration.ofMillis(duration(PLANNER_TIMEOUT, properties.getOrDefault(PLANNER_TIMEOUT, "30s")).toMillis()),
                bool(PRUNING_ENABLED, properties.getOrDefault(PRUNING_ENABLED, "true")),
                Optional.ofNullable(properties.get(DYNAMIC_FILTER_WAIT)).map(value -> duration(DYNAMIC_FILTER_WAIT, value)),
                timeZone(properties, TIME_ZONE, HIVE_TIME_ZONE),
                either(properties, ORC_BY_NAME, HIVE_ORC_BY_NAME).map(value -> bool(ORC_BY_NAME, value)).orElse(false),
                timeZone(properties, ORC_TIME_ZONE, HIVE_ORC_TIME_ZONE),
                StorageProperties.parse(storage));
    }

    /** Whether the native connector takes the property: it is one of its own, or one that it shares with Trino's connectors. */
    public static boolean reads(String name)
    {
        return name.startsWith("skipbridge.") || NAMES.contains(name) || StorageProperties.covers(name);
    }

    private static List<PlannerAddress> planners(String value)
    {
        try {
            return PlannerAddress.parseList(value);
        }
        catch (IllegalArgumentException e) {
            throw invalid("%s: %s".formatted(PLANNER, e.getMessage()));
        }
    }

    private static Duration duration(String name, String value)
    {
        try {
            return Duration.valueOf(value.strip());
        }
        catch (IllegalArgumentException e) {
            throw invalid("%s: '%s' is not a duration such as 30s or 500ms".formatted(name, value));
        }
    }

    /** The zone's id, with UTC for all its aliases. The default is the JVM's zone, as in Trino's hive connector. */
    private static String timeZone(Map<String, String> properties, String own, String hives)
    {
        String value = either(properties, own, hives).orElseGet(() -> TimeZone.getDefault().getID());
        try {
            DateTimeZone zone = properties.containsKey(own) || properties.containsKey(hives) ? DateTimeZone.forID(value) : DateTimeZone.forTimeZone(TimeZone.getDefault());
            return zone.isFixed() && zone.getOffset(0) == 0 ? DateTimeZone.UTC.getID() : zone.getID();
        }
        catch (IllegalArgumentException e) {
            throw invalid("%s: '%s' is not a time zone such as UTC or America/New_York".formatted(properties.containsKey(own) ? own : hives, value));
        }
    }

    /** The value of a property that Trino's hive connector has too, under either name. */
    private static Optional<String> either(Map<String, String> properties, String own, String hives)
    {
        Optional<String> ours = Optional.ofNullable(properties.get(own)).map(String::strip);
        Optional<String> theirs = Optional.ofNullable(properties.get(hives)).map(String::strip);
        if (ours.isPresent() && theirs.isPresent() && !ours.equals(theirs)) {
            throw invalid("%s is '%s' and %s is '%s': they mean the same, set one".formatted(own, ours.get(), hives, theirs.get()));
        }
        return ours.or(() -> theirs);
    }

    public static boolean bool(String name, String value)
    {
        return switch (value.strip()) {
            case "true" -> true;
            case "false" -> false;
            default -> throw invalid("%s: '%s' is neither true nor false".formatted(name, value));
        };
    }

    /** A catalog file that was copied from Trino's hive connector names the metastore, which only the planner asks. */
    private static String hint(String name)
    {
        if (name.startsWith("hive.metastore")) {
            return "the planner asks the metastore: remove it, and set metastore.uri where skipbridge serve runs; or build the plugin with: skipbridge plugin build --hive";
        }
        return "the nearest known is '%s'".formatted(nearest(name));
    }

    static String nearest(String name)
    {
        String best = NAMES.getFirst();
        for (String candidate : NAMES) {
            if (distance(name, candidate) < distance(name, best)) {
                best = candidate;
            }
        }
        return best;
    }

    private static int distance(String left, String right)
    {
        int[] previous = new int[right.length() + 1];
        for (int j = 0; j < previous.length; j++) {
            previous[j] = j;
        }
        for (int i = 1; i <= left.length(); i++) {
            int[] current = new int[right.length() + 1];
            current[0] = i;
            for (int j = 1; j < current.length; j++) {
                int replaced = previous[j - 1] + (left.charAt(i - 1) == right.charAt(j - 1) ? 0 : 1);
                current[j] = Math.min(replaced, Math.min(previous[j], current[j - 1]) + 1);
            }
            previous = current;
        }
        return previous[right.length()];
    }

    private static TrinoException invalid(String message)
    {
        return new TrinoException(INVALID_CONFIGURATION, message);
    }
}
