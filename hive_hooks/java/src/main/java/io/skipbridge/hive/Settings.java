package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;

import java.net.InetSocketAddress;

/** Settings of the session or hive-site.xml. An invalid value is reported by name, and the scan reads all files. */
final class Settings
{
    static final String PLANNER = "skipbridge.planner";
    static final String TIMEOUT = "skipbridge.planner.timeout.ms";
    static final String PRUNING = "skipbridge.pruning_enabled";
    static final String SEGMENTS = "skipbridge.segments";
    static final String REFRESH = "skipbridge.hook.refresh.ms";

    private static final String DEFAULT_PLANNER = "127.0.0.1:9527";
    private static final int DEFAULT_TIMEOUT = 2000;
    private static final int DEFAULT_REFRESH = 10_000;
    private static final int LEAST_REFRESH = 100;

    private Settings() {}

    static boolean pruning(Configuration configuration)
    {
        return configuration.getBoolean(PRUNING, true);
    }

    /** Unresolved. */
    static InetSocketAddress planner(Configuration configuration)
    {
        return address(configuration.getTrimmed(PLANNER, DEFAULT_PLANNER));
    }

    /** Unresolved. */
    static InetSocketAddress address(String text)
    {
        int colon = text.lastIndexOf(':');
        String host = colon < 0 ? "" : text.substring(0, colon).replaceAll("^\\[|]$", "");
        try {
            int port = Integer.parseInt(text.substring(colon + 1));
            if (!host.isEmpty() && port > 0 && port < 65536) {
                return InetSocketAddress.createUnresolved(host, port);
            }
        }
        catch (NumberFormatException e) {
            // reported below with the whole text
        }
        throw new IllegalArgumentException(PLANNER + " is '" + text + "', not host:port");
    }

    /** The segments that queries read of some tables; empty: all. */
    static String segments(Configuration configuration)
    {
        return configuration.getTrimmed(SEGMENTS, "");
    }

    static int timeoutMillis(Configuration configuration)
    {
        return positive(configuration, TIMEOUT, DEFAULT_TIMEOUT);
    }

    /** How often the hook asks which tables have an index; any session may set it, so there is a least. */
    static int refreshMillis(Configuration configuration)
    {
        return Math.max(LEAST_REFRESH, positive(configuration, REFRESH, DEFAULT_REFRESH));
    }

    private static int positive(Configuration configuration, String name, int otherwise)
    {
        String text = configuration.getTrimmed(name, "");
        int millis = 0;
        try {
            millis = text.isEmpty() ? otherwise : Integer.parseInt(text);
        }
        catch (NumberFormatException e) {
            // reported below by name
        }
        if (millis < 1) {
            throw new IllegalArgumentException(name + " is '" + text + "', not a positive number of milliseconds");
        }
        return millis;
    }
}
