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

    /** Refuses an answer of another protocol. */
    static void require(int protocol)
    {
        if (protocol != PlannerClient.PROTOCOL) {
            throw new ProtocolException("the planner speaks protocol " + protocol + ", these hooks speak " + PlannerClient.PROTOCOL);
        }
    }
}
