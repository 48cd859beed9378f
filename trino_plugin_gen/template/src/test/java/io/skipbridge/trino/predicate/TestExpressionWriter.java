package io.skipbridge.trino.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.trino.spi.expression.Call;
import io.trino.spi.expression.ConnectorExpression;
import io.trino.spi.expression.Constant;
import io.trino.spi.expression.FunctionName;
import io.trino.spi.expression.Variable;
import io.trino.spi.type.Type;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.List;
import java.util.Map;

import static io.trino.spi.expression.StandardFunctions.ADD_FUNCTION_NAME;
import static io.trino.spi.expression.StandardFunctions.AND_FUNCTION_NAME;
import static io.trino.spi.expression.StandardFunctions.EQUAL_OPERATOR_FUNCTION_NAME;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** What is nested however deeply is written without its depths. */
class TestExpressionWriter
{
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final BridgeColumnHandle K = new BridgeColumnHandle("k", BIGINT, ColumnKind.DATA, 0);

    @Test
    void whatIsNestedTooDeeplyIsOpaque()
            throws IOException
    {
        ConnectorExpression sum = new Variable("k", BIGINT);
        for (int i = 0; i < 500; i++) {
            sum = call(ADD_FUNCTION_NAME, BIGINT, sum, new Constant(1L, BIGINT));
        }
        JsonNode node = only(call(EQUAL_OPERATOR_FUNCTION_NAME, BOOLEAN, sum, new Constant(5L, BIGINT)));
        for (int i = 0; i <= ExpressionWriter.MAX_DEPTH; i++) {
            assertFalse(node.has("opaque"), "at " + i);
            node = node.get("args").get(0);
        }
        assertTrue(node.has("opaque"), node.toString());
    }

    @Test
    void conjunctionsWithinConjunctionsLoseNothingElse()
            throws IOException
    {
        ConnectorExpression leaf = call(EQUAL_OPERATOR_FUNCTION_NAME, BOOLEAN, new Variable("k", BIGINT), new Constant(5L, BIGINT));
        ConnectorExpression all = leaf;
        for (int i = 0; i < 1000; i++) {
            all = call(AND_FUNCTION_NAME, BOOLEAN, leaf, all);
        }
        List<String> conjuncts = ExpressionWriter.conjuncts(all, Map.of("k", K));
        assertEquals(ExpressionWriter.MAX_DEPTH + 2, conjuncts.size());
        assertEquals("$equal", MAPPER.readTree(conjuncts.getFirst()).get("call").asText());
        assertTrue(conjuncts.getLast().contains("opaque"));
    }

    private static JsonNode only(ConnectorExpression expression)
            throws IOException
    {
        List<String> conjuncts = ExpressionWriter.conjuncts(expression, Map.of("k", K));
        assertEquals(1, conjuncts.size());
        return MAPPER.readTree(conjuncts.getFirst());
    }

    private static Call call(FunctionName name, Type type, ConnectorExpression... arguments)
    {
        return new Call(type, name, List.of(arguments));
    }
}
