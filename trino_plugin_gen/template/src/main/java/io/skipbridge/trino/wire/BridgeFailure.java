package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import static java.util.Objects.requireNonNull;

/** An error that the planner reported, with its code and remedy. */
public final class BridgeFailure
        extends Exception
{
    public static final String PLAN_LOST = "PLAN_LOST";

    private final String code;
    private final String category;
    private final String remedy;
    private final boolean retryable;

    public BridgeFailure(String code, String category, String message, String remedy, boolean retryable)
    {
        super(message);
        this.code = requireNonNull(code, "code is null");
        this.category = requireNonNull(category, "category is null");
        this.remedy = requireNonNull(remedy, "remedy is null");
        this.retryable = retryable;
    }

    static BridgeFailure read(BinaryReader reader)
    {
        String code = "INTERNAL";
        String category = "INTERNAL_ERROR";
        String message = "";
        String remedy = "";
        boolean retryable = false;
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            if (id == 5) {
                if (reader.is(WireType.BOOL)) {
                    retryable = reader.bool();
                }
            }
            else if (reader.is(WireType.STRING)) {
                String text = reader.string();
                switch (id) {
                    case 1 -> code = text;
                    case 2 -> category = text;
                    case 3 -> message = text;
                    case 4 -> remedy = text;
                    default -> {}
                }
            }
        }
        return new BridgeFailure(code, category, message, remedy, retryable);
    }

    public String code()
    {
        return code;
    }

    public String category()
    {
        return category;
    }

    public String remedy()
    {
        return remedy;
    }

    public boolean retryable()
    {
        return retryable;
    }

    public boolean planLost()
    {
        return code.equals(PLAN_LOST);
    }
}
