package io.skipbridge.hive;

import java.time.Duration;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.TimeZone;

/**
 * Hive before 3.1 reads a timestamp from text as an instant of the JVM's time zone. A time of day that its clocks skip becomes a later one there, so
 * that the query sees another value than the index. A zone that skips a whole day does the same to its date.
 */
final class SkippedTimes
{
    private static final Duration DAY = Duration.ofDays(1);
    private static final boolean READS_INSTANTS = readsInstants();

    private SkippedTimes() {}

    /** Whether this Hive may read a value that the filter compares otherwise than its text says. */
    static boolean concern(String document)
    {
        return READS_INSTANTS && concern(document, TimeZone.getDefault().toZoneId().getRules());
    }

    /** The same in a time zone. */
    static boolean concern(String document, ZoneRules zone)
    {
        if (document.contains("\"timestamp\"")) {
            return !zone.isFixedOffset();
        }
        return document.contains("\"date\"") && zone.getTransitions().stream().filter(ZoneOffsetTransition::isGap).anyMatch(gap -> gap.getDuration().compareTo(DAY) >= 0);
    }

    private static boolean readsInstants()
    {
        try {
            Class.forName("org.apache.hadoop.hive.common.type.Timestamp", false, SkippedTimes.class.getClassLoader());
            return false;
        }
        catch (ClassNotFoundException e) {
            return true;
        }
    }
}
