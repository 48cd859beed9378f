package io.skipbridge.client;

import static java.util.Objects.requireNonNull;

/** An error that the planner reported, with its code and remedy. */
public final class BridgeFailure
        extends Exception
{
    private static final long serialVersionUID = 1;

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
            switch (id) {
                case 1:
                    code = reader.is(WireType.STRING) ? reader.string() : code;
                    break;
                case 2:
                    category = reader.is(WireType.STRING) ? reader.string() : category;
                    break;
                case 3:
                    message = reader.is(WireType.STRING) ? reader.string() : message;
                    break;
                case 4:
                    remedy = reader.is(WireType.STRING) ? reader.string() : remedy;
                    break;
                case 5:
                    retryable = reader.is(WireType.BOOL) ? reader.bool() : retryable;
                    break;
                default:
                    reader.skip();
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

    /** Whether the query or its table is the cause, so that other queries may succeed. */
    public boolean ofThisQuery()
    {
        return category.equals("USER_ERROR");
    }

    public boolean planLost()
    {
        return code.equals(PLAN_LOST);
    }
}
