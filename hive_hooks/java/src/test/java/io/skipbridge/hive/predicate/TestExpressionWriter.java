package io.skipbridge.hive.predicate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.hive.common.type.Date;
import org.apache.hadoop.hive.common.type.HiveChar;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.common.type.HiveVarchar;
import org.apache.hadoop.hive.common.type.Timestamp;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeConstantDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeFieldDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.udf.UDFLike;
import org.apache.hadoop.hive.ql.udf.UDFToLong;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDF;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFBetween;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFBridge;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFIn;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPAnd;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPEqual;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPEqualNS;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPEqualOrGreaterThan;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPEqualOrLessThan;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPGreaterThan;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPLessThan;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPNot;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPNotEqual;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPNotNull;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPNull;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPOr;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFToDate;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.junit.jupiter.api.Test;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Hive's own expressions give the documents that the planner's tests read. */
class TestExpressionWriter
{
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ExprNodeDesc K = column("k", "bigint");
    private static final ExprNodeDesc S = column("s", "string");
    private static final ExprNodeDesc X = column("x", "double");
    private static final ExprNodeDesc TS = column("ts", "timestamp");

    private static Map<String, ExprNodeDesc> expressions()
    {
        Map<String, ExprNodeDesc> made = new LinkedHashMap<>();
        made.put("comparison", call(new GenericUDFOPEqual(), K, constant("bigint", 5L)));
        made.put("mirrored", call(new GenericUDFOPLessThan(), constant("bigint", 5L), K));
        made.put("and, or", call(new GenericUDFOPOr(),
                call(new GenericUDFOPAnd(), call(new GenericUDFOPGreaterThan(), K, constant("bigint", 1L)),
                        call(new GenericUDFOPEqualOrLessThan(), K, constant("bigint", 9L))),
                call(new GenericUDFOPEqual(), S, constant("string", "a'b"))));
        made.put("between", call(new GenericUDFBetween(), constant("boolean", false), K, constant("bigint", 1L), constant("bigint", 9L)));
        made.put("in", call(new GenericUDFIn(), K, constant("bigint", 3L), constant("bigint", 1L)));
        made.put("not in with null", call(new GenericUDFOPNot(), call(new GenericUDFIn(), K, constant("bigint", 3L), constant("bigint", null))));
        made.put("null tests", call(new GenericUDFOPAnd(), call(new GenericUDFOPNull(), K), call(new GenericUDFOPNotNull(), S)));
        made.put("null-safe", call(new GenericUDFOPEqualNS(), K, constant("bigint", 5L)));
        made.put("boolean column", call(new GenericUDFOPAnd(), column("b", "boolean"), call(new GenericUDFOPNot(), column("c", "boolean"))));
        made.put("like with two backslashes", call(new GenericUDFBridge("like", true, UDFLike.class.getName()), S, constant("string", "a\\\\%")));
        made.put("double", call(new GenericUDFOPGreaterThan(), X, constant("double", 0.1)));
        made.put("unequal to zero", call(new GenericUDFOPNotEqual(), X, constant("double", 0.0)));
        made.put("NaN", call(new GenericUDFOPEqual(), X, constant("double", Double.NaN)));
        made.put("decimal", call(new GenericUDFOPEqual(), column("m", "decimal(10,2)"), constant("decimal(2,1)", HiveDecimal.create("5.5"))));
        made.put("date", call(new GenericUDFOPEqualOrGreaterThan(), column("d", "date"), constant("date", Date.valueOf("2013-01-31"))));
        made.put("timestamp", call(new GenericUDFOPLessThan(), TS, constant("timestamp", Timestamp.valueOf("2013-01-31 10:00:00.123456"))));
        made.put("timestamp of whole seconds", call(new GenericUDFOPLessThan(), TS, constant("timestamp", Timestamp.valueOf("2013-01-31 10:00:00"))));
        made.put("timestamp with nanoseconds",
                call(new GenericUDFOPLessThan(), TS, constant("timestamp", Timestamp.valueOf("2013-01-31 10:00:00.123456789"))));
        made.put("day of a timestamp", call(new GenericUDFOPEqual(), typed("date", new GenericUDFToDate(), TS), constant("date", Date.valueOf("2013-01-31"))));
        made.put("text beyond the basic plane", call(new GenericUDFOPEqual(), S, constant("string", "\ud83d\ude00")));
        made.put("varchar", call(new GenericUDFOPEqual(), column("v", "varchar(3)"), constant("varchar(3)", new HiveVarchar("ab", 3))));
        made.put("char", call(new GenericUDFOPEqual(), column("c", "char(4)"), constant("char(4)", new HiveChar("ab", 4))));
        made.put("binary", call(new GenericUDFOPEqual(), column("raw", "binary"), constant("binary", new byte[] {0, 5, -1})));
        made.put("cast that keeps order", call(new GenericUDFOPEqual(),
                typed("bigint", new GenericUDFBridge("UDFToLong", false, UDFToLong.class.getName()), column("n", "int")), constant("bigint", 5L)));
        made.put("field", call(new GenericUDFOPEqual(),
                new ExprNodeFieldDesc(TypeInfoUtils.getTypeInfoFromTypeString("int"), column("st", "struct<a:int,b:string>"), "a", false), constant("int", 5)));
        made.put("a function", call(new GenericUDFOPOr(),
                call(new GenericUDFOPEqual(), typed("string", new GenericUDFUpper(), S), constant("string", "A")),
                call(new GenericUDFOPEqual(), K, constant("bigint", 5L))));
        return made;
    }

    @Test
    void documentsAreThoseOfTheVectors()
            throws Exception
    {
        Map<String, JsonNode> vectors = new LinkedHashMap<>();
        for (JsonNode vector : JSON.readTree(new File("../../tests/vectors/hive_expressions.json"))) {
            vectors.put(vector.get("name").asText(), vector.get("predicate"));
        }
        Map<String, ExprNodeDesc> expressions = expressions();
        assertTrue(expressions.size() >= 25);
        for (Map.Entry<String, ExprNodeDesc> expression : expressions.entrySet()) {
            String written = ExpressionWriter.document(Collections.singletonList(expression.getValue()));
            assertEquals(vectors.get(expression.getKey()), JSON.readTree(written), expression.getKey());
        }
    }

    @Test
    void alternativesAreJoinedByOr()
            throws Exception
    {
        JsonNode written = JSON.readTree(ExpressionWriter.document(Arrays.asList(
                call(new GenericUDFOPEqual(), K, constant("bigint", 5L)), call(new GenericUDFOPNull(), K)))).get("expression");
        assertEquals("GenericUDFOPOr", written.get("call").asText());
        assertEquals("GenericUDFOPNull", written.get("args").get(1).get("call").asText());
    }

    @Test
    void aFunctionOfAnotherPackageKeepsItsWholeName()
            throws Exception
    {
        JsonNode written = JSON.readTree(ExpressionWriter.document(Collections.singletonList(call(new Foreign(), K)))).get("expression");
        assertEquals(Foreign.class.getName(), written.get("call").asText());
    }

    @Test
    void halfASurrogatePairIsWrittenAsWhatItIs()
    {
        String written = ExpressionWriter.document(Collections.singletonList(call(new GenericUDFOPEqual(), S, constant("string", "x\ud83d"))));
        assertTrue(written.contains("\"x\\ud83d\""), written);
    }

    @Test
    void lettersOfAnotherLocaleAreNoFunctionOfThePlanners()
            throws Exception
    {
        Locale held = Locale.getDefault();
        try {
            for (String language : new String[] {"tr", "en"}) {
                Locale.setDefault(new Locale(language));
                for (GenericUDF function : new GenericUDF[] {new GenericUDFLower(), new GenericUDFUpper()}) {
                    ExprNodeDesc of = new ExprNodeGenericFuncDesc(TypeInfoUtils.getTypeInfoFromTypeString("string"), function, Collections.singletonList(S));
                    JsonNode written = JSON.readTree(ExpressionWriter.document(Collections.singletonList(of))).get("expression");
                    assertEquals(language.equals("tr"), written.has("opaque"), function.getClass().getName());
                }
            }
        }
        finally {
            Locale.setDefault(held);
        }
    }

    @Test
    void whatIsNestedTooDeeplyIsOpaque()
            throws Exception
    {
        ExprNodeDesc node = call(new GenericUDFOPNull(), K);
        for (int i = 0; i < 1000; i++) {
            node = call(new GenericUDFOPNot(), node);
        }
        JsonNode written = JSON.readTree(ExpressionWriter.document(Collections.singletonList(node))).get("expression");
        for (int i = 0; i <= ExpressionWriter.MAX_DEPTH; i++) {
            written = written.get("args").get(0);
        }
        assertTrue(written.has("opaque"), written.toString());
    }

    private static final class Foreign
            extends GenericUDFOPEqual {}

    private static ExprNodeDesc column(String name, String type)
    {
        return new ExprNodeColumnDesc(TypeInfoUtils.getTypeInfoFromTypeString(type), name, "t", false);
    }

    private static ExprNodeDesc constant(String type, Object value)
    {
        return new ExprNodeConstantDesc(TypeInfoUtils.getTypeInfoFromTypeString(type), value);
    }

    private static ExprNodeDesc call(GenericUDF function, ExprNodeDesc... arguments)
    {
        return typed("boolean", function, arguments);
    }

    private static ExprNodeDesc typed(String type, GenericUDF function, ExprNodeDesc... arguments)
    {
        List<ExprNodeDesc> children = new ArrayList<>(Arrays.asList(arguments));
        return new ExprNodeGenericFuncDesc(TypeInfoUtils.getTypeInfoFromTypeString(type), function, children);
    }
}
