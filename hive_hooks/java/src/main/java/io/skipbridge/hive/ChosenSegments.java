package io.skipbridge.hive;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The segments that queries read of some tables: {@code db.t:3,5;db.u:0.1}. */
final class ChosenSegments
{
    private static final Pattern TABLE = Pattern.compile("\\s*([^.:;]+\\.[^:;]+?)\\s*:\\s*([0-9]+(?:\\.[0-9]+)?(?:\\s*,\\s*[0-9]+(?:\\.[0-9]+)?)*)\\s*");

    private ChosenSegments() {}

    /**
     * The ids of a table's segments, separated by commas; empty: all are read.
     *
     * @throws IllegalArgumentException the text is none, or names the table twice
     */
    static String of(String setting, String table)
    {
        String found = "";
        if (setting.trim().isEmpty()) {
            return found;
        }
        for (String part : setting.split(";", -1)) {
            Matcher match = TABLE.matcher(part);
            if (!match.matches()) {
                throw new IllegalArgumentException(Settings.SEGMENTS + ": '" + part + "' does not name segments of a table -> say db.table:3,5;db.other:0.1");
            }
            if (match.group(1).toLowerCase(Locale.ENGLISH).equals(table.toLowerCase(Locale.ENGLISH))) {
                if (!found.isEmpty()) {
                    throw new IllegalArgumentException(Settings.SEGMENTS + ": segments of " + table + " are named twice -> name them once");
                }
                found = match.group(2).replaceAll("\\s", "");
            }
        }
        return found;
    }
}
