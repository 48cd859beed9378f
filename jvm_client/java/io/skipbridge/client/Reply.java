package io.skipbridge.client;

import java.util.function.Function;

/** Reads the reply to one call: a result, a failure that the service declares, or Thrift's own exception. */
public final class Reply
{
    /** The protocol number of bridge.thrift, which requests give. Planners of other numbers are refused. */
    public static final int PROTOCOL = 2;
    private static final int REPLY = 2;
    private static final int EXCEPTION = 3;

    private Reply() {}

    /** @param resultType STOP if the method returns nothing */
    public static <T> T read(BinaryReader reader, String method, int sequence, byte resultType, Function<BinaryReader, T> result)
            throws BridgeFailure
    {
        int kind = reader.message(method, sequence);
        if (kind == EXCEPTION) {
            throw new ProtocolException(String.format(
                    "the planner does not serve %s: it is older than this client, which speaks protocol %d (%s)",
                    method,
                    PROTOCOL,
                    applicationException(reader)));
        }
        if (kind != REPLY) {
            throw new ProtocolException(String.format("message of kind %d where a reply to %s was expected", kind, method));
        }
        T value = null;
        boolean answered = resultType == WireType.STOP;
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            if (id == 0 && reader.is(resultType)) {
                value = result.apply(reader);
                answered = true;
            }
            else if (id == 1 && reader.is(WireType.STRUCT)) {
                throw BridgeFailure.read(reader);
            }
            else if (id > 1) {
                reader.skip();
            }
        }
        if (!answered) {
            throw new ProtocolException("empty reply to " + method);
        }
        return value;
    }

    private static String applicationException(BinaryReader reader)
    {
        String message = "";
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            if (id != 1) {
                reader.skip();
            }
            else if (reader.is(WireType.STRING)) {
                message = reader.string();
            }
        }
        return message;
    }
}
