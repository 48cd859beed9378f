package io.skipbridge.trino;

import io.trino.spi.TrinoException;
import io.trino.spi.connector.SchemaTableName;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import static io.trino.spi.StandardErrorCode.INVALID_SESSION_PROPERTY;
import static java.util.Locale.ENGLISH;

/** The segments that queries read of some tables: {@code db.t:3,5;db.u:0.1}. */
final class ChosenSegments
{
    private static final Pattern TABLE = Pattern.compile("\\s*([^.:;]+)\\.([^:;]+?)\\s*:\\s*([0-9]+(?:\\.[0-9]+)?(?:\\s*,\\s*[0-9]+(?:\\.[0-9]+)?)*)\\s*");

    private ChosenSegments() {}

    /** The ids of a table's segments, separated by commas; empty: all are read. */
    static Optional<String> of(String property, SchemaTableName table)
    {
        return Optional.ofNullable(parse(property).get(table));
    }

    /** Throws INVALID_SESSION_PROPERTY if the text is none. */
    static Map<SchemaTableName, String> parse(String property)
    {
        Map<SchemaTableName, String> chosen = new HashMap<>();
        if (property.isBlank()) {
            return chosen;
        }
        for (String part : property.split(";", -1)) {
            Matcher match = TABLE.matcher(part);
            if (!match.matches()) {
                throw invalid("'%s' does not name segments of a table; say db.table:3,5;db.other:0.1".formatted(part));
            }
            SchemaTableName name = new SchemaTableName(match.group(1).toLowerCase(ENGLISH), match.group(2).toLowerCase(ENGLISH));
            if (chosen.put(name, match.group(3).replaceAll("\\s", "")) != null) {
                throw invalid("segments of %s are named twice".formatted(name));
            }
        }
        return chosen;
    }

    private static TrinoException invalid(String message)
    {
        return new TrinoException(INVALID_SESSION_PROPERTY, message);
    }
}
