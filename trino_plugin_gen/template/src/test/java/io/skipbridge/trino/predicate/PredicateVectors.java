package io.skipbridge.trino.predicate;

import io.airlift.slice.Slices;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.expression.Call;
import io.trino.spi.expression.ConnectorExpression;
import io.trino.spi.expression.Constant;
import io.trino.spi.expression.FieldDereference;
import io.trino.spi.expression.FunctionName;
import io.trino.spi.expression.Variable;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.predicate.ValueSet;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.CharType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.LongTimestamp;
import io.trino.spi.type.LongTimestampWithTimeZone;
import io.trino.spi.type.RowType;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.TimestampWithTimeZoneType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateTimeEncoding.packDateTimeWithZone;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.TimeZoneKey.getTimeZoneKey;
import static io.trino.spi.type.UuidType.UUID;
import static io.trino.spi.type.VarbinaryType.VARBINARY;
import static io.trino.spi.type.VarcharType.VARCHAR;

/** What the engine would hand over, by the names of the shared vectors. */
final class PredicateVectors
{
    private PredicateVectors() {}

    static Map<String, String> written()
    {
        Map<String, String> written = new LinkedHashMap<>();
        written.put("all", PredicateWriter.write(TupleDomain.all(), List.of()));
        written.put("none", PredicateWriter.write(TupleDomain.none(), List.of()));
        domains(written);
        expressions(written);
        return written;
    }

    private static void domains(Map<String, String> written)
    {
        written.put("bigint range", domain(BIGINT, Domain.create(ValueSet.ofRanges(Range.range(BIGINT, 5L, true, 9L, false)), false)));
        written.put("bigint in", domain(BIGINT, Domain.create(ValueSet.of(BIGINT, 1L, 7L, Long.MIN_VALUE), false)));
        written.put("bigint not equal", domain(BIGINT, Domain.create(ValueSet.of(BIGINT, 3L).complement(), false)));
        written.put("is null", domain(BIGINT, Domain.onlyNull(BIGINT)));
        written.put("is not null", domain(BIGINT, Domain.notNull(BIGINT)));
        written.put("is distinct from", domain(BIGINT, Domain.create(ValueSet.of(BIGINT, 3L).complement(), true)));
        written.put("huge in", domain(BIGINT, Domain.create(ValueSet.copyOf(BIGINT, LongStream.range(0, 10_001).mapToObj(i -> (Object) (2 * i)).toList()), false)));
        written.put("boolean", domain(BOOLEAN, Domain.singleValue(BOOLEAN, true)));
        written.put("real", domain(REAL, Domain.singleValue(REAL, (long) Float.floatToRawIntBits(0.1f))));
        written.put("double", domain(DOUBLE, Domain.create(ValueSet.ofRanges(Range.greaterThan(DOUBLE, -0.0)), false)));
        written.put("double infinity", domain(DOUBLE, Domain.singleValue(DOUBLE, Double.NEGATIVE_INFINITY)));
        DecimalType shortDecimal = DecimalType.createDecimalType(10, 2);
        written.put("short decimal", domain(shortDecimal, Domain.singleValue(shortDecimal, -12345L)));
        DecimalType longDecimal = DecimalType.createDecimalType(38, 10);
        written.put("long decimal", domain(longDecimal, Domain.singleValue(longDecimal, Int128.valueOf(new BigInteger("-12345678901234567890123456789")))));
        written.put("date", domain(DATE, Domain.create(ValueSet.ofRanges(Range.lessThanOrEqual(DATE, -719_162L)), false)));
        TimestampType micros = TimestampType.createTimestampType(6);
        written.put("timestamp", domain(micros, Domain.singleValue(micros, -1L)));
        TimestampType picos = TimestampType.createTimestampType(12);
        written.put("long timestamp", domain(picos, Domain.singleValue(picos, new LongTimestamp(-1, 500_000))));
        TimestampWithTimeZoneType millisZone = TimestampWithTimeZoneType.createTimestampWithTimeZoneType(3);
        written.put("timestamp with time zone", domain(millisZone, Domain.singleValue(millisZone, packDateTimeWithZone(1_357_000_000_123L, getTimeZoneKey("America/New_York")))));
        TimestampWithTimeZoneType microsZone = TimestampWithTimeZoneType.createTimestampWithTimeZoneType(6);
        written.put("long timestamp with time zone", domain(microsZone, Domain.singleValue(
                microsZone, LongTimestampWithTimeZone.fromEpochMillisAndFraction(1_357_000_000_123L, 456_000_000, getTimeZoneKey("UTC")))));
        Type bounded = VarcharType.createVarcharType(2);
        written.put("varchar", domain(bounded, Domain.create(ValueSet.of(bounded, utf8Slice("UA"), utf8Slice("é\"")), true)));
        written.put("varchar beyond the basic plane", domain(VARCHAR, Domain.singleValue(VARCHAR, utf8Slice("\uD83D\uDE00\n\\"))));
        written.put("varchar that is not utf-8", domain(VARCHAR, Domain.singleValue(VARCHAR, Slices.wrappedBuffer((byte) 0xff))));
        CharType padded = CharType.createCharType(5);
        written.put("char", domain(padded, Domain.singleValue(padded, utf8Slice("ab"))));
        written.put("varbinary", domain(VARBINARY, Domain.singleValue(VARBINARY, Slices.wrappedBuffer((byte) 0, (byte) 255, (byte) 16))));
        written.put("uuid is dropped", domain(UUID, Domain.singleValue(UUID, Slices.wrappedBuffer(new byte[16]))));
        written.put("hidden column", PredicateWriter.write(
                TupleDomain.withColumnDomains(Map.of(BridgeColumnHandle.FILE_SIZE, Domain.create(ValueSet.ofRanges(Range.greaterThan(BIGINT, 100L)), false))),
                List.of()));
        written.put("two columns", PredicateWriter.write(
                TupleDomain.withColumnDomains(Map.of(column("y", BIGINT), Domain.singleValue(BIGINT, 2L), column("x", BIGINT), Domain.singleValue(BIGINT, 1L))),
                List.of()));
    }

    private static void expressions(Map<String, String> written)
    {
        Variable a = new Variable("a", BIGINT);
        Variable b = new Variable("b", VARCHAR);
        ConnectorExpression equal = call("$equal", a, new Constant(5L, BIGINT));
        ConnectorExpression like = call("$like", b, new Constant(utf8Slice("x%"), VARCHAR));
        written.put("or across columns", expression(call("$or", equal, like)));
        written.put("conjuncts", expression(call("$and", like, call("$and", equal, call("$not", call("$is_null", b))))));
        written.put("null constant", expression(call("$identical", a, new Constant(null, BIGINT))));
        written.put("in", expression(call("$in", a, new Call(new ArrayType(BIGINT), new FunctionName("$array"), List.of(new Constant(1L, BIGINT), new Constant(2L, BIGINT))))));
        RowType inner = RowType.from(List.of(RowType.field("c", INTEGER)));
        RowType outer = RowType.from(List.of(RowType.field("b", inner)));
        written.put("dereference", expression(call("$equal", new FieldDereference(INTEGER, new FieldDereference(inner, new Variable("r", outer), 0), 0), new Constant(7L, INTEGER))));
        written.put("cast", expression(call("$greater_than", new Call(DOUBLE, new FunctionName("$cast"), List.of(a)), new Constant(1.5, DOUBLE))));
        written.put("function", expression(call("$equal", new Call(VARCHAR, new FunctionName("upper"), List.of(b)), new Constant(utf8Slice("X"), VARCHAR))));
        written.put("opaque constant", expression(call("$equal", new Variable("u", UUID), new Constant(Slices.wrappedBuffer(new byte[16]), UUID))));
        written.put("unknown variable", expression(call("$equal", new Variable("elsewhere", BIGINT), new Constant(1L, BIGINT))));
    }

    private static String domain(Type type, Domain domain)
    {
        return PredicateWriter.write(TupleDomain.withColumnDomains(Map.of(column("x", type), domain)), List.of());
    }

    private static String expression(ConnectorExpression expression)
    {
        Map<String, ColumnHandle> assignments = Map.of(
                "a", column("a", BIGINT),
                "b", column("b", VARCHAR),
                "u", column("u", UUID),
                "r", column("r", RowType.anonymous(List.of(BIGINT))));
        List<String> conjuncts = new ArrayList<>(ExpressionWriter.conjuncts(expression, assignments));
        conjuncts.sort(null);
        return PredicateWriter.write(TupleDomain.all(), conjuncts);
    }

    private static Call call(String name, ConnectorExpression... arguments)
    {
        return new Call(BOOLEAN, new FunctionName(name), List.of(arguments));
    }

    private static BridgeColumnHandle column(String name, Type type)
    {
        return new BridgeColumnHandle(name, type, ColumnKind.DATA, 0);
    }
}
