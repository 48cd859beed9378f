package io.skipbridge.hive.predicate;

import io.skipbridge.client.JsonText;
import org.apache.hadoop.hive.ql.io.sarg.ExpressionTree;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;

import java.util.List;
import java.util.Map;

/** Writes a SearchArgument as JSON, see docs/reference/predicates.md, for scans without a filter expression. */
public final class SearchArgumentWriter
{
    private static final String UNSUPPORTED = "UNSUPPORTED";

    private final JsonText json = new JsonText();

    private SearchArgumentWriter() {}

    /** @param types Hive's types of the table's columns, by name */
    public static String document(SearchArgument argument, Map<String, String> types)
    {
        SearchArgumentWriter writer = new SearchArgumentWriter();
        JsonText json = writer.json;
        json.open('{').name("version").raw("1").name("search_argument").open('{').name("leaves").open('[');
        for (PredicateLeaf leaf : argument.getLeaves()) {
            writer.leaf(leaf, types.getOrDefault(leaf.getColumnName(), ""));
        }
        json.close(']').name("tree");
        writer.tree(argument.getExpression(), 0);
        return json.close('}').close('}').toString();
    }

    private void leaf(PredicateLeaf leaf, String columnType)
    {
        boolean listed = leaf.getOperator() == PredicateLeaf.Operator.IN || leaf.getOperator() == PredicateLeaf.Operator.BETWEEN;
        boolean bare = leaf.getOperator() == PredicateLeaf.Operator.IS_NULL;
        boolean known = listed ? writable(leaf.getLiteralList()) : bare || writable(leaf.getLiteral());
        json.open('{')
                .field("operator", known ? leaf.getOperator().name() : UNSUPPORTED)
                .field("type", leaf.getType().name())
                .field("column", leaf.getColumnName())
                .field("column_type", columnType);
        if (known && listed) {
            json.name("literal_list").open('[');
            leaf.getLiteralList().forEach(this::literal);
            json.close(']');
        }
        else if (known && !bare) {
            json.name("literal");
            literal(leaf.getLiteral());
        }
        json.close('}');
    }

    private static boolean writable(List<Object> literals)
    {
        return literals != null && literals.stream().allMatch(SearchArgumentWriter::writable);
    }

    // Dates and timestamps are omitted, because the meaning of their Java classes differs between Hive versions.
    private static boolean writable(Object literal)
    {
        return literal == null || literal instanceof Long || literal instanceof Double || literal instanceof String || literal instanceof Boolean
                || literal instanceof HiveDecimalWritable;
    }

    private void literal(Object literal)
    {
        if (literal == null || literal instanceof Long || literal instanceof Boolean) {
            json.raw(String.valueOf(literal));
        }
        else {
            json.string(literal.toString());
        }
    }

    private void tree(ExpressionTree tree, int depth)
    {
        if (depth > ExpressionWriter.MAX_DEPTH) {
            json.open('{').field("op", "a part nested deeper than " + ExpressionWriter.MAX_DEPTH).close('}');
            return;
        }
        json.open('{').field("op", tree.getOperator().name());
        switch (tree.getOperator()) {
            case LEAF:
                json.name("leaf").raw(Integer.toString(tree.getLeaf()));
                break;
            case CONSTANT:
                json.field("value", tree.getConstant().name());
                break;
            default:
                json.name("children").open('[');
                tree.getChildren().forEach(child -> tree(child, depth + 1));
                json.close(']');
        }
        json.close('}');
    }
}
