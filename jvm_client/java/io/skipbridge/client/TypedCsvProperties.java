package io.skipbridge.client;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** What the planner's properties say of a CSV file with types: each field is cast from its text to the type that the table declares. */
public final class TypedCsvProperties
{
    public static final String TIMESTAMP_FORMATS = "timestamp.formats";
    public static final String DATE_FORMAT = "skipbridge.date_format";
    private static final String CAST = "skipbridge.cast";
    private static final int MOST_SHOWN = 60;

    private final Map<String, String> properties;

    public TypedCsvProperties(Map<String, String> properties)
    {
        this.properties = properties;
    }

    /** Whether the planner asks for casts. */
    public static boolean areOf(Map<String, String> properties)
    {
        return properties.containsKey(CAST);
    }

    /** The names of the file's fields, by which columns are found. */
    public List<String> fields()
    {
        return list("skipbridge.csv.fields");
    }

    /** The text that stands for NULL; null: none does. */
    public String nulls()
    {
        return properties.get("serialization.null.format");
    }

    /** Whether a value that cannot be cast is an error, and not NULL. */
    public boolean fails()
    {
        return properties.get(CAST).equals("fail");
    }

    /** Patterns of timestamps; empty: those of a cast. */
    public List<String> timestampFormats()
    {
        return list(TIMESTAMP_FORMATS).stream().filter(format -> !format.isEmpty()).collect(Collectors.toList());
    }

    /** The pattern of dates; null: that of a cast. */
    public String dateFormat()
    {
        return properties.get(DATE_FORMAT);
    }

    /** Splits lines into fields. */
    public CsvFields parser()
    {
        return new CsvFields(character("separatorChar", ','), character("quoteChar", '"'), character("escapeChar", '\\'));
    }

    /** What is wrong with a value that cannot be cast. */
    public static String problem(String text, String column, Object type)
    {
        String shown = text.length() <= MOST_SHOWN ? text : text.substring(0, MOST_SHOWN) + "...";
        return String.format("the value '%s' of the column %s cannot be cast to %s", shown, column, type);
    }

    private List<String> list(String name)
    {
        return Arrays.asList(properties.getOrDefault(name, "").split(","));
    }

    private char character(String name, char otherwise)
    {
        String text = properties.getOrDefault(name, "");
        return text.isEmpty() ? otherwise : text.charAt(0);
    }
}
