package io.skipbridge.hive.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.hive.ql.io.sarg.ExpressionTree;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf.Type;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.junit.jupiter.api.Test;

import java.sql.Timestamp;
import java.util.Collections;
import java.util.List;

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
        ExpressionTree tree = new ExpressionTree(0);
        for (int i = 0; i < 1000; i++) {
            tree = new ExpressionTree(ExpressionTree.Operator.NOT, tree);
        }
        SearchArgument plain = SearchArgumentFactory.newBuilder().startAnd().isNull("d", Type.DATE).end().build();
        JsonNode node = JSON.readTree(SearchArgumentWriter.document(new Nested(plain, tree), Collections.emptyMap())).get("search_argument").get("tree");
        for (int i = 0; i <= ExpressionWriter.MAX_DEPTH; i++) {
            assertEquals("NOT", node.get("op").asText());
            node = node.get("children").get(0);
        }
        assertEquals("a part nested deeper than " + ExpressionWriter.MAX_DEPTH, node.get("op").asText());
    }

    private static final class Nested
            implements SearchArgument
    {
        private final SearchArgument leaves;
        private final ExpressionTree tree;

        private Nested(SearchArgument leaves, ExpressionTree tree)
        {
            this.leaves = leaves;
            this.tree = tree;
        }

        @Override
        public List<PredicateLeaf> getLeaves()
        {
            return leaves.getLeaves();
        }

        @Override
        public ExpressionTree getExpression()
        {
            return tree;
        }

        @Override
        public TruthValue evaluate(TruthValue[] values)
        {
            return TruthValue.YES_NO_NULL;
        }
    }
}
