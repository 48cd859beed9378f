package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.Reply;
import io.skipbridge.client.WireType;

import java.util.List;

/** The planner's reply to {@code health}: its release, the number of its protocol, and the processes behind its address. */
record Health(String version, int protocol, List<String> processes)
{
    /** The protocol of this connector, as in bridge.thrift. */
    static final int PROTOCOL = Reply.PROTOCOL;

    static Health read(BinaryReader reader)
    {
        String version = "";
        int protocol = -1;
        List<String> processes = List.of();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> version = reader.is(WireType.STRING) ? reader.string() : version;
                case 2 -> protocol = reader.is(WireType.I32) ? reader.i32() : protocol;
                case 6 -> processes = reader.is(WireType.LIST) ? reader.strings() : processes;
                default -> reader.skip();
            }
        }
        return new Health(version, protocol, List.copyOf(processes));
    }

    /** Fails unless the planner speaks this connector's protocol. */
    void check()
    {
        if (protocol != PROTOCOL) {
            throw new ProtocolException(
                    "the planner, release %s, speaks protocol %d, and the connector speaks %d".formatted(version, protocol, PROTOCOL),
                    protocol < PROTOCOL
                            ? "Upgrade the planner to the connector's release, then restart it: skipbridge serve"
                            : "Build the connector of the planner's release and install it on every node: skipbridge plugin build");
        }
    }
}
