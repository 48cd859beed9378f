package io.skipbridge.client;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * The fields of a line of CSV by the rules of OpenCSVSerde, one line a row. A field whose quote stays open at the end of the line is no field, as in
 * Trino.
 */
public final class CsvFields
{
    private final char separator;
    private final char quote;
    private final char escape;

    public CsvFields(char separator, char quote, char escape)
    {
        this.separator = separator;
        this.quote = quote;
        this.escape = escape;
    }

    /** No field at all of an empty line. */
    public List<String> of(String line)
    {
        if (line.isEmpty()) {
            return Collections.emptyList();
        }
        List<String> fields = new ArrayList<>();
        StringBuilder field = new StringBuilder();
        boolean inQuotes = false;
        boolean inField = false;
        for (int i = 0; i < line.length(); i++) {
            char c = line.charAt(i);
            boolean last = i + 1 == line.length();
            char next = last ? 0 : line.charAt(i + 1);
            if (c == escape) {
                if ((inQuotes || inField) && !last && (next == quote || next == escape)) {
                    field.append(next);
                    i++;
                }
            }
            else if (c == quote) {
                if ((inQuotes || inField) && !last && next == quote) {
                    field.append(quote);
                    i++;
                }
                else {
                    inQuotes = !inQuotes;
                    if (i > 2 && line.charAt(i - 1) != separator && !last && next != separator) {
                        if (isBlank(field)) {
                            field.setLength(0);
                        }
                        else {
                            field.append(c);
                        }
                    }
                }
                inField = !inField;
            }
            else if (c == separator && !inQuotes) {
                fields.add(field.toString());
                field.setLength(0);
                inField = false;
            }
            else {
                field.append(c);
                inField = true;
            }
        }
        if (!inQuotes) {
            fields.add(field.toString());
        }
        return fields;
    }

    private static boolean isBlank(StringBuilder text)
    {
        return text.length() > 0 && text.chars().allMatch(Character::isWhitespace);
    }
}
