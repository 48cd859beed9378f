package io.skipbridge.hive.predicate;

import io.skipbridge.client.JsonText;
import org.apache.hadoop.hive.common.type.HiveChar;
import org.apache.hadoop.hive.common.type.HiveVarchar;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeConstantDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeFieldDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDF;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFBridge;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper;
import org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;

import java.math.BigDecimal;
import java.util.Base64;
import java.util.List;
import java.util.Locale;

/**
 * Writes Hive's filter as a typed tree, see docs/reference/predicates.md. Nothing is interpreted: functions are written by class name. A part that the
 * tree cannot express is written as text, which prunes nothing.
 */
public final class ExpressionWriter
{
    private static final String GENERIC = "org.apache.hadoop.hive.ql.udf.generic.";
    private static final String PLAIN = "org.apache.hadoop.hive.ql.udf.";
    static final int MAX_DEPTH = 140;
    private static final int MAX_LENGTH = 16 << 20;

    private final JsonText json;

    private ExpressionWriter(JsonText json)
    {
        this.json = json;
    }

    /** The document for a disjunction of filters. */
    public static String document(List<? extends ExprNodeDesc> alternatives)
    {
        JsonText json = new JsonText();
        ExpressionWriter writer = new ExpressionWriter(json);
        json.open('{').name("version").raw("1").name("expression");
        if (alternatives.size() == 1) {
            writer.node(alternatives.get(0), 0);
        }
        else {
            writer.call("GenericUDFOPOr", "boolean", alternatives, 0);
        }
        return json.close('}').toString();
    }

    private void node(ExprNodeDesc node, int depth)
    {
        if (depth > MAX_DEPTH) {
            opaque("a part nested deeper than " + MAX_DEPTH);
        }
        else if (json.length() > MAX_LENGTH) {
            opaque("what follows " + MAX_LENGTH + " characters");
        }
        else if (node instanceof ExprNodeColumnDesc) {
            json.open('{').field("column", ((ExprNodeColumnDesc) node).getColumn()).field("type", node.getTypeString()).close('}');
        }
        else if (node instanceof ExprNodeConstantDesc) {
            constant((ExprNodeConstantDesc) node);
        }
        else if (node instanceof ExprNodeFieldDesc && !((ExprNodeFieldDesc) node).getIsList()) {
            ExprNodeFieldDesc field = (ExprNodeFieldDesc) node;
            json.open('{').field("field", field.getFieldName()).field("type", node.getTypeString()).name("of");
            node(field.getDesc(), depth + 1);
            json.close('}');
        }
        else if (node instanceof ExprNodeGenericFuncDesc) {
            ExprNodeGenericFuncDesc function = (ExprNodeGenericFuncDesc) node;
            if (ofLocale(function.getGenericUDF())) {
                opaque("a function of the locale " + Locale.getDefault());
                return;
            }
            call(name(function.getGenericUDF()), node.getTypeString(), function.getChildren(), depth);
        }
        else {
            opaque(node == null ? "null" : node.getClass().getSimpleName());
        }
    }

    /** Whether a function maps ASCII letters by the JVM's locale, as Turkish does: Hive's lower and upper use Java's default. */
    private static boolean ofLocale(GenericUDF function)
    {
        return (function instanceof GenericUDFLower && !"I".toLowerCase().equals("i"))
                || (function instanceof GenericUDFUpper && !"i".toUpperCase().equals("I"));
    }

    private void call(String name, String type, List<? extends ExprNodeDesc> arguments, int depth)
    {
        json.open('{').field("call", name).field("type", type).name("args").open('[');
        for (ExprNodeDesc argument : arguments) {
            node(argument, depth + 1);
        }
        json.close(']').close('}');
    }

    /** The simple class name of Hive's own functions, and the full name of others, so that none is mistaken for one of Hive's. */
    private static String name(GenericUDF function)
    {
        String name = function instanceof GenericUDFBridge ? ((GenericUDFBridge) function).getUdfClassName() : function.getClass().getName();
        if (name == null) {
            return "?";
        }
        for (String known : new String[] {GENERIC, PLAIN}) {
            if (name.startsWith(known) && name.indexOf('.', known.length()) < 0) {
                return name.substring(known.length());
            }
        }
        return name;
    }

    private void constant(ExprNodeConstantDesc constant)
    {
        TypeInfo type = constant.getTypeInfo();
        String value = value(type, constant.getValue());
        if (value == null) {
            opaque("a constant of " + type.getTypeName());
            return;
        }
        json.open('{').name("constant");
        if (value.isEmpty() || value.charAt(0) != '=') {
            json.string(value.substring(1));
        }
        else {
            json.raw(value.substring(1));
        }
        json.field("type", type.getTypeName()).close('}');
    }

    /** The value after a prefix: = for literal JSON, ' for text; null if it cannot be written. */
    private static String value(TypeInfo type, Object value)
    {
        if (value == null) {
            return "=null";
        }
        if (!(type instanceof PrimitiveTypeInfo)) {
            return null;
        }
        switch (((PrimitiveTypeInfo) type).getPrimitiveCategory()) {
            case BOOLEAN:
                return value instanceof Boolean ? "=" + value : null;
            case BYTE:
            case SHORT:
            case INT:
            case LONG:
                return value instanceof Number ? "=" + ((Number) value).longValue() : null;
            case FLOAT:
            case DOUBLE:
                return value instanceof Number ? "'" + value : null;
            case DECIMAL:
                return value instanceof BigDecimal ? "'" + ((BigDecimal) value).toPlainString() : "'" + value;
            case STRING:
                return value instanceof String ? "'" + value : null;
            case VARCHAR:
                return value instanceof HiveVarchar ? "'" + ((HiveVarchar) value).getValue() : null;
            case CHAR:
                return value instanceof HiveChar ? "'" + ((HiveChar) value).getStrippedValue() : null;
            case DATE:
            case TIMESTAMP:
                // The local date and time, whatever class this version uses.
                return "'" + value;
            case BINARY:
                return value instanceof byte[] ? "'" + Base64.getEncoder().encodeToString((byte[]) value) : null;
            default:
                return null;
        }
    }

    private void opaque(String text)
    {
        json.open('{').field("opaque", text).close('}');
    }
}
