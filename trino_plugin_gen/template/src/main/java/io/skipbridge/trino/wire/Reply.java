package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.WireType;

import java.util.function.Function;

/** Reads the reply to one call: a result, a failure that the service declares, or Thrift's own exception. */
final class Reply
{
    private static final int REPLY = 2;
    private static final int EXCEPTION = 3;

    private Reply() {}

    static <T> T read(BinaryReader reader, String method, int sequence, byte resultType, Function<BinaryReader, T> result)
            throws BridgeFailure
    {
        int kind = reader.message(method, sequence);
        if (kind == EXCEPTION) {
            throw new ProtocolException("the planner does not serve %s: %s".formatted(method, applicationException(reader)));
        }
        if (kind != REPLY) {
            throw new ProtocolException("message of kind %d where a reply to %s was expected".formatted(kind, method));
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
