package io.skipbridge.hive.wire;

/** The planner's bytes are not what the protocol says: another program or another version answers there. */
public final class ProtocolException
        extends RuntimeException
{
    private static final long serialVersionUID = 1;

    public ProtocolException(String message)
    {
        super(message);
    }
}
