package io.skipbridge.hive.wire;

/** An error that the planner declared, as it named it. */
public final class PlannerFailure
        extends Exception
{
    private static final long serialVersionUID = 1;

    private final String code;
    private final String hint;

    PlannerFailure(String code, String message, String hint)
    {
        super(message);
        this.code = code;
        this.hint = hint;
    }

    static PlannerFailure read(FrameReader reader)
    {
        String code = "INTERNAL";
        String message = "";
        String hint = "";
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            if (id == 1 && reader.is(FrameReader.STRING)) {
                code = reader.string();
            }
            else if (id == 3 && reader.is(FrameReader.STRING)) {
                message = reader.string();
            }
            else if (id == 4 && reader.is(FrameReader.STRING)) {
                hint = reader.string();
            }
            else if (id != 1 && id != 3 && id != 4) {
                reader.skip();
            }
        }
        return new PlannerFailure(code, message, hint);
    }

    public String code()
    {
        return code;
    }

    /** The mend, in the planner's words. */
    public String hint()
    {
        return hint;
    }
}
