package io.skipbridge.client;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The segments that queries read of some tables: {@code db.t:3,5;db.u:0.1}. */
public final class ChosenSegments
{
    private static final Pattern TABLE = Pattern.compile("\\s*([^.:;]+\\.[^:;]+?)\\s*:\\s*([0-9]+(?:\\.[0-9]+)?(?:\\s*,\\s*[0-9]+(?:\\.[0-9]+)?)*)\\s*");

    private ChosenSegments() {}

    /**
     * The ids of each table's segments, separated by commas; of a table that is not named, all are read.
     *
     * @throws IllegalArgumentException the text is none, or names a table twice
     */
    public static Map<String, String> parse(String text)
    {
        Map<String, String> chosen = new HashMap<>();
        if (text.trim().isEmpty()) {
            return chosen;
        }
        for (String part : text.split(";", -1)) {
            Matcher match = TABLE.matcher(part);
            if (!match.matches()) {
                throw new IllegalArgumentException("'" + part + "' does not name segments of a table; say db.table:3,5;db.other:0.1");
            }
            String table = match.group(1).toLowerCase(Locale.ENGLISH);
            if (chosen.put(table, match.group(2).replaceAll("\\s", "")) != null) {
                throw new IllegalArgumentException("segments of " + table + " are named twice; name them once");
            }
        }
        return chosen;
    }
}
