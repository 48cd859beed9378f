package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.util.Collections;
import java.util.Map;

/** How files are read: the name of their format, and the properties of its reader. */
public final class ReaderSpec
{
    private final String format;
    private final Map<String, String> properties;

    public ReaderSpec(String format, Map<String, String> properties)
    {
        this.format = format;
        this.properties = properties;
    }

    static ReaderSpec read(BinaryReader reader)
    {
        String format = "";
        Map<String, String> properties = Collections.emptyMap();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1:
                    format = reader.is(WireType.STRING) ? reader.string() : format;
                    break;
                case 2:
                    properties = reader.is(WireType.MAP) ? reader.stringMap() : properties;
                    break;
                default:
                    reader.skip();
            }
        }
        return new ReaderSpec(format, properties);
    }

    public String format()
    {
        return format;
    }

    public Map<String, String> properties()
    {
        return properties;
    }

    @Override
    public boolean equals(Object other)
    {
        return other instanceof ReaderSpec && format.equals(((ReaderSpec) other).format) && properties.equals(((ReaderSpec) other).properties);
    }

    @Override
    public int hashCode()
    {
        return 31 * format.hashCode() + properties.hashCode();
    }
}
