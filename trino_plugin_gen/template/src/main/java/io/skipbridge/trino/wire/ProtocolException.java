package io.skipbridge.trino.wire;

/** The bytes of a reply do not follow the protocol: another program or another version replied. */
public final class ProtocolException
        extends RuntimeException
{
    private final String remedy;

    public ProtocolException(String message)
    {
        this(message, "Start the planner of the same release there: skipbridge serve");
    }

    ProtocolException(String message, String remedy)
    {
        super(message);
        this.remedy = remedy;
    }

    public String remedy()
    {
        return remedy;
    }
}
