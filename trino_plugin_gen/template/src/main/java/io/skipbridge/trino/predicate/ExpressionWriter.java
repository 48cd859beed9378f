package io.skipbridge.trino.predicate;

import io.skipbridge.client.JsonText;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.expression.Call;
import io.trino.spi.expression.ConnectorExpression;
import io.trino.spi.expression.Constant;
import io.trino.spi.expression.FieldDereference;
import io.trino.spi.expression.Variable;
import io.trino.spi.type.RowType;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static io.trino.spi.expression.StandardFunctions.AND_FUNCTION_NAME;

/**
 * Writes the engine's expressions unchanged. An expression without a wire form becomes {@code {"opaque": …}} in its place, so that the
 * planner knows which side of an OR or NOT is missing.
 */
public final class ExpressionWriter
{
    /** The planner accepts slightly deeper expressions; a deeper one prunes nothing. */
    static final int MAX_DEPTH = 140;
    private static final int MAX_TEXT = 1 << 20;
    private static final int MAX_OPAQUE = 200;
    private static final String JSON_PATH = "JsonPath";

    private final Map<String, ColumnHandle> assignments;

    private ExpressionWriter(Map<String, ColumnHandle> assignments)
    {
        this.assignments = assignments;
    }

    /** The conjuncts of an expression in wire form; TRUE has none. */
    public static List<String> conjuncts(ConnectorExpression expression, Map<String, ColumnHandle> assignments)
    {
        List<String> texts = new ArrayList<>();
        new ExpressionWriter(assignments).collect(expression, texts, 0);
        return texts;
    }

    private void collect(ConnectorExpression expression, List<String> texts, int depth)
    {
        if (depth <= MAX_DEPTH && expression instanceof Call call && call.getFunctionName().equals(AND_FUNCTION_NAME)) {
            call.getArguments().forEach(argument -> collect(argument, texts, depth + 1));
        }
        else if (!expression.equals(Constant.TRUE)) {
            JsonText json = new JsonText();
            write(json, expression, 0);
            String text = json.toString();
            texts.add(text.length() <= MAX_TEXT ? text : opaque(new JsonText(), "expression of " + text.length() + " characters").toString());
        }
    }

    private void write(JsonText json, ConnectorExpression expression, int depth)
    {
        switch (expression) {
            case Call _ when depth > MAX_DEPTH -> opaque(json, "a part nested deeper than " + MAX_DEPTH);
            case Call call -> call(json, call, depth);
            case Constant constant -> constant(json, constant);
            case Variable variable -> column(json, variable, List.of(), variable);
            case FieldDereference field -> dereference(json, field);
            default -> opaque(json, expression.toString());
        }
    }

    private void call(JsonText json, Call call, int depth)
    {
        if (call.getFunctionName().getCatalogSchema().isPresent()) {
            opaque(json, call.getFunctionName().toString());
            return;
        }
        json.open('{').field("call", call.getFunctionName().getName()).field("type", call.getType().getDisplayName()).name("args").open('[');
        call.getArguments().forEach(argument -> write(json, argument, depth + 1));
        json.close(']').close('}');
    }

    private static void constant(JsonText json, Constant constant)
    {
        JsonText value = new JsonText();
        String type = constant.getType().getDisplayName();
        try {
            if (constant.getValue() == null) {
                value.raw("null");
            }
            else if (constant.getType().getBaseName().equals(JSON_PATH)) {
                // The class is internal to the engine; its text is the path in the query.
                value.string(constant.getValue().toString());
                type = "varchar";
            }
            else {
                ValueWriter.write(value, constant.getType(), constant.getValue());
            }
        }
        catch (NotWritable e) {
            opaque(json, "constant: " + e.getMessage());
            return;
        }
        json.open('{').name("constant").raw(value.toString()).field("type", type).close('}');
    }

    private void column(JsonText json, Variable variable, List<String> path, ConnectorExpression whole)
    {
        if (!(assignments.get(variable.getName()) instanceof BridgeColumnHandle column)) {
            opaque(json, "variable " + variable.getName());
            return;
        }
        json.open('{').field("column", column.name());
        if (!path.isEmpty()) {
            json.name("path").open('[');
            path.forEach(json::string);
            json.close(']');
        }
        json.field("type", whole.getType().getDisplayName()).close('}');
    }

    private void dereference(JsonText json, FieldDereference outermost)
    {
        List<String> path = new ArrayList<>();
        ConnectorExpression expression = outermost;
        while (expression instanceof FieldDereference field) {
            Optional<String> name = field.getTarget().getType() instanceof RowType row
                    ? row.getFields().get(field.getField()).getName()
                    : Optional.empty();
            if (name.isEmpty()) {
                opaque(json, outermost.toString());
                return;
            }
            path.addFirst(name.get());
            expression = field.getTarget();
        }
        if (expression instanceof Variable variable) {
            column(json, variable, path, outermost);
        }
        else {
            opaque(json, outermost.toString());
        }
    }

    private static JsonText opaque(JsonText json, String what)
    {
        return json.open('{').field("opaque", what.length() <= MAX_OPAQUE ? what : what.substring(0, MAX_OPAQUE) + "…").close('}');
    }
}
