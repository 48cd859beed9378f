package io.skipbridge.hive.wire;

/** The reply violates the protocol: another program or another version is listening there. */
public final class ProtocolException
        extends RuntimeException
{
    private static final long serialVersionUID = 1;

    public ProtocolException(String message)
    {
        super(message);
    }
}
