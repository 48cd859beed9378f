package io.skipbridge.trino.predicate;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.trino.spi.TrinoException;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.predicate.ValueSet;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.Type;
import org.junit.jupiter.api.Test;

import java.math.BigInteger;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import static io.airlift.slice.Slices.utf8Slice;
import static io.airlift.slice.Slices.wrappedBuffer;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.VarbinaryType.VARBINARY;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestRowFilterReader
{
    private static final BridgeColumnHandle KEY = new BridgeColumnHandle("p", INTEGER, ColumnKind.PARTITION_KEY, 1);
    private static final DecimalType LONG_DECIMAL = DecimalType.createDecimalType(38, 10);
    private static final TimestampType MICROS = TimestampType.createTimestampType(6);
    private static final Map<String, Type> TYPES = new HashMap<>();

    static {
        for (Type type : List.of(BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, REAL, VARBINARY, VARCHAR, LONG_DECIMAL, MICROS)) {
            TYPES.put(type.getDisplayName(), type);
        }
    }

    @Test
    void readsTheDomainsThatTheWriterWrites()
    {
        same(BIGINT, Domain.create(ValueSet.ofRanges(Range.range(BIGINT, 5L, true, 9L, false), Range.greaterThan(BIGINT, 20L)), false));
        same(BIGINT, Domain.create(ValueSet.of(BIGINT, 1L, Long.MIN_VALUE), true));
        same(BIGINT, Domain.create(ValueSet.of(BIGINT, 3L).complement(), true));
        same(BIGINT, Domain.onlyNull(BIGINT));
        same(BIGINT, Domain.notNull(BIGINT));
        same(BOOLEAN, Domain.singleValue(BOOLEAN, true));
        same(DATE, Domain.create(ValueSet.ofRanges(Range.lessThanOrEqual(DATE, -719_162L)), false));
        same(VARCHAR, Domain.create(ValueSet.ofRanges(Range.greaterThanOrEqual(VARCHAR, utf8Slice("é\""))), false));
        same(VARBINARY, Domain.singleValue(VARBINARY, wrappedBuffer((byte) 0, (byte) 255)));
        same(LONG_DECIMAL, Domain.singleValue(LONG_DECIMAL, Int128.valueOf(new BigInteger("-12345678901234567890123456789"))));
        same(MICROS, Domain.create(ValueSet.ofRanges(Range.lessThan(MICROS, -1L)), false));
        assertEquals(TupleDomain.all(), read(""));
        assertEquals(TupleDomain.all(), read("{\"version\": 1}"));
        assertEquals(TupleDomain.none(), read("{\"version\": 1, \"none\": true, \"domains\": []}"));
    }

    @Test
    void findsPartitionKeys()
    {
        TupleDomain<BridgeColumnHandle> both = TupleDomain.withColumnDomains(Map.of(KEY, Domain.singleValue(INTEGER, 7L), column(BIGINT), Domain.notNull(BIGINT)));
        assertEquals(both, read(PredicateWriter.write(both, List.of())));
        refused("{\"version\": 1, \"domains\": [{\"column\": \"p\", \"type\": \"bigint\", \"null_allowed\": true, \"all\": true}]}", "partition key p");
    }

    @Test
    void refusesByNameWhatItDoesNotUnderstand()
    {
        refused("{\"version\": 1, \"expression\": {\"opaque\": \"f(x)\"}}", "'expression'");
        refused("{\"version\": 1, \"dropped\": [\"x\"]}", "'dropped'");
        refused("{\"version\": 2}", "version 2");
        refused("{", "row filter");
        String start = "{\"version\": 1, \"domains\": [{\"column\": \"x\", ";
        refused(start + "\"path\": [\"a\"], \"type\": \"bigint\", \"null_allowed\": false, \"all\": true}]}", "'path'");
        refused(start + "\"type\": \"double\", \"null_allowed\": false, \"all\": true}]}", "double");
        refused(start + "\"type\": \"real\", \"null_allowed\": false, \"all\": true}]}", "real");
        refused(start + "\"type\": \"bigint\", \"all\": true}]}", "null_allowed");
        refused(start + "\"type\": \"bigint\", \"null_allowed\": true}]}", "values");
        refused(start + "\"type\": \"bigint\", \"null_allowed\": true, \"values\": [null], \"inclusive\": true}]}", "NULL");
        refused(start + "\"type\": \"bigint\", \"null_allowed\": true, \"ranges\": [{\"low\": 5, \"high\": 1}]}]}", "row filter");
        refused("{\"version\": 1, \"domains\": [{\"column\": \"$path\", \"type\": \"varchar\", \"null_allowed\": false, \"all\": true}]}", "$path");
    }

    private static void same(Type type, Domain domain)
    {
        TupleDomain<BridgeColumnHandle> filter = TupleDomain.withColumnDomains(Map.of(column(type), domain));
        assertEquals(filter, read(PredicateWriter.write(filter, List.of())));
    }

    private static void refused(String filter, String named)
    {
        TrinoException refused = assertThrows(TrinoException.class, () -> read(filter), filter);
        assertEquals("SKIPBRIDGE_ROW_FILTER_UNSUPPORTED", refused.getErrorCode().getName());
        assertTrue(refused.getMessage().contains(named) && refused.getMessage().contains(filter), refused.getMessage());
    }

    private static TupleDomain<BridgeColumnHandle> read(String filter)
    {
        return RowFilterReader.read(filter, List.of(KEY), TYPES::get);
    }

    private static BridgeColumnHandle column(Type type)
    {
        return new BridgeColumnHandle("x", type, ColumnKind.DATA, BridgeColumnHandle.NO_POSITION);
    }
}
