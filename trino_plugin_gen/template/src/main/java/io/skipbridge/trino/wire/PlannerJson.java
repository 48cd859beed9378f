package io.skipbridge.trino.wire;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.skipbridge.trino.BridgeErrorCode;
import io.trino.spi.TrinoException;

/** Properties of readers that hold JSON. */
public final class PlannerJson
{
    private static final ObjectMapper JSON = new ObjectMapper();

    private PlannerJson() {}

    /** @throws TrinoException PLANNER_PROTOCOL if the text is no JSON */
    public static JsonNode parse(String property, String text)
    {
        try {
            return JSON.readTree(text);
        }
        catch (JsonProcessingException e) {
            throw notUnderstood(property, e);
        }
    }

    public static TrinoException notUnderstood(String property, Throwable cause)
    {
        return new TrinoException(BridgeErrorCode.PLANNER_PROTOCOL, "the planner's property %s is not understood. Use a planner and a plugin of one version".formatted(property), cause);
    }
}
