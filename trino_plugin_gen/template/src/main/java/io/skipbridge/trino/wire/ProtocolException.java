package io.skipbridge.trino.wire;

/** The bytes of a reply do not follow the protocol: another program or another version replied. */
public final class ProtocolException
        extends RuntimeException
{
    public ProtocolException(String message)
    {
        super(message);
    }
}
