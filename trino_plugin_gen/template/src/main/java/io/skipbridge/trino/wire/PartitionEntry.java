package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.WireType;

import java.util.List;

/** A partition's name and its keys' unescaped texts; {@code nulls[i]}: key i is NULL. */
public record PartitionEntry(String name, List<String> values, boolean[] nulls)
{
    public static final PartitionEntry NONE = new PartitionEntry("", List.of(), new boolean[0]);

    static PartitionEntry read(BinaryReader reader)
    {
        String name = "";
        List<String> values = List.of();
        boolean[] nulls = {};
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> name = reader.is(WireType.STRING) ? reader.string() : name;
                case 2 -> values = reader.is(WireType.LIST) ? reader.strings() : values;
                case 3 -> nulls = reader.is(WireType.LIST) ? reader.bools() : nulls;
                default -> reader.skip();
            }
        }
        if (values.size() != nulls.length) {
            throw new ProtocolException("partition '%s' has %d values and %d null flags".formatted(name, values.size(), nulls.length));
        }
        return new PartitionEntry(name, List.copyOf(values), nulls);
    }
}
