package io.skipbridge.client;

/** The bytes of a reply do not follow the protocol: another program or another version replied. */
public final class ProtocolException
        extends RuntimeException
{
    private static final long serialVersionUID = 1;

    private final String remedy;

    public ProtocolException(String message)
    {
        this(message, "Start the planner of the same release there: skipbridge serve");
    }

    public ProtocolException(String message, String remedy)
    {
        super(message);
        this.remedy = remedy;
    }

    public String remedy()
    {
        return remedy;
    }
}
