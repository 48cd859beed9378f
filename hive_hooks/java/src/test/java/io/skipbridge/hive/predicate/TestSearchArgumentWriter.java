package io.skipbridge.hive.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.hive.ql.io.sarg.ExpressionTree;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf.Type;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument.TruthValue;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.junit.jupiter.api.Test;

import java.lang.reflect.Constructor;
import java.lang.reflect.Proxy;
import java.sql.Timestamp;
import java.util.Collections;

import static org.junit.jupiter.api.Assertions.assertEquals;

class TestSearchArgumentWriter
{
    private static final ObjectMapper JSON = new ObjectMapper();

    @Test
    void leavesAndTree()
            throws Exception
    {
        SearchArgument argument = SearchArgumentFactory.newBuilder()
                .startAnd()
                .startNot().lessThanEquals("k", Type.LONG, 5L).end()
                .in("s", Type.STRING, "a", "b")
                .isNull("d", Type.DATE)
                .lessThan("t", Type.TIMESTAMP, new Timestamp(0))
                .end()
                .build();
        JsonNode written = JSON.readTree(SearchArgumentWriter.document(argument, Collections.singletonMap("s", "varchar(3)"))).get("search_argument");
        JsonNode tree = written.get("tree");
        assertEquals("AND", tree.get("op").asText());
        JsonNode not = tree.get("children").get(0);
        assertEquals("NOT", not.get("op").asText());
        JsonNode leaves = written.get("leaves");
        JsonNode first = leaves.get(not.get("children").get(0).get("leaf").asInt());
        assertEquals("LESS_THAN_EQUALS", first.get("operator").asText());
        assertEquals(5, first.get("literal").asLong());
        assertEquals("varchar(3)", leaves.get(1).get("column_type").asText());
        assertEquals("[\"a\",\"b\"]", leaves.get(1).get("literal_list").toString());
        assertEquals("IS_NULL", leaves.get(2).get("operator").asText());
        // What its class means differs between versions.
        assertEquals("UNSUPPORTED", leaves.get(3).get("operator").asText());
    }

    @Test
    void whatIsNestedTooDeeplySaysNothing()
            throws Exception
    {
        // Hive's builder would push the NOTs down; its trees can be made by nobody else.
        Constructor<ExpressionTree> constant = ExpressionTree.class.getDeclaredConstructor(TruthValue.class);
        Constructor<ExpressionTree> branch = ExpressionTree.class.getDeclaredConstructor(ExpressionTree.Operator.class, ExpressionTree[].class);
        constant.setAccessible(true);
        branch.setAccessible(true);
        ExpressionTree tree = constant.newInstance(TruthValue.YES);
        for (int i = 0; i < 1000; i++) {
            tree = branch.newInstance(ExpressionTree.Operator.NOT, new ExpressionTree[] {tree});
        }
        ExpressionTree root = tree;
        SearchArgument argument = (SearchArgument) Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {SearchArgument.class},
                (proxy, method, arguments) -> method.getName().equals("getExpression") ? root : Collections.emptyList());
        JsonNode node = JSON.readTree(SearchArgumentWriter.document(argument, Collections.emptyMap())).get("search_argument").get("tree");
        for (int i = 0; i <= ExpressionWriter.MAX_DEPTH; i++) {
            assertEquals("NOT", node.get("op").asText());
            node = node.get("children").get(0);
        }
        assertEquals("a part nested deeper than " + ExpressionWriter.MAX_DEPTH, node.get("op").asText());
    }
}
