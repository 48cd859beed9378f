package io.skipbridge.trino.wire;

/** The planner's bytes are not what the protocol says: another program or another version answers there. */
public final class ProtocolException
        extends RuntimeException
{
    public ProtocolException(String message)
    {
        super(message);
    }
}
