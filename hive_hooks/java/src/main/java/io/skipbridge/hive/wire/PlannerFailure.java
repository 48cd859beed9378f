package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

/** An error reported by the planner, with its code. */
public final class PlannerFailure
        extends Exception
{
    private static final long serialVersionUID = 1;

    private final String code;
    private final String category;
    private final String remedy;

    PlannerFailure(String code, String category, String message, String remedy)
    {
        super(message);
        this.code = code;
        this.category = category;
        this.remedy = remedy;
    }

    static PlannerFailure read(BinaryReader reader)
    {
        String[] texts = {"", "INTERNAL", "INTERNAL_ERROR", "", ""};
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            if (id < 1 || id >= texts.length) {
                reader.skip();
            }
            else if (reader.is(WireType.STRING)) {
                texts[id] = reader.string();
            }
        }
        return new PlannerFailure(texts[1], texts[2], texts[3], texts[4]);
    }

    public String code()
    {
        return code;
    }

    /** Whether the query or its table is the cause, so that other queries may succeed. */
    public boolean ofThisQuery()
    {
        return category.equals("USER_ERROR");
    }

    /** The remedy given by the planner. */
    public String remedy()
    {
        return remedy;
    }
}
