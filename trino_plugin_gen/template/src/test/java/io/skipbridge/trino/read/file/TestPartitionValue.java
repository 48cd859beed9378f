package io.skipbridge.trino.read.file;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.predicate.ValueSet;
import io.trino.spi.type.CharType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestPartitionValue
{
    @Test
    void parsesByType()
    {
        assertEquals(1L, PartitionValue.parse(INTEGER, "01", "p"));
        assertEquals(-9L, PartitionValue.parse(BIGINT, "-9", "p"));
        assertEquals(true, PartitionValue.parse(BOOLEAN, "true", "p"));
        assertEquals(-1L, PartitionValue.parse(DATE, "1969-12-31", "p"));
        assertEquals(utf8Slice("a b"), PartitionValue.parse(VARCHAR, "a b", "p"));
        assertEquals(-499_999L, PartitionValue.parse(TimestampType.TIMESTAMP_MICROS, "1969-12-31 23:59:59.500001", "p"));
        assertEquals(0L, PartitionValue.parse(TimestampType.TIMESTAMP_MILLIS, "1970-01-01 00:00:00", "p"));
        assertEquals(150L, PartitionValue.parse(DecimalType.createDecimalType(5, 2), "1.5", "p"));
        assertEquals(Int128.valueOf(150), PartitionValue.parse(DecimalType.createDecimalType(30, 2), "1.50", "p"));
    }

    @Test
    void refusesWhatIsNotAValue()
    {
        for (String text : new String[] {"", "x", "300", "1.0"}) {
            TrinoException failure = assertThrows(TrinoException.class, () -> PartitionValue.parse(TINYINT, text, "p=" + text));
            assertTrue(failure.getMessage().contains("p=" + text));
        }
        assertThrows(TrinoException.class, () -> PartitionValue.parse(DecimalType.createDecimalType(3, 2), "12.5", "p"));
        assertThrows(TrinoException.class, () -> PartitionValue.parse(DecimalType.createDecimalType(9, 2), "1.555", "p"));
    }

    @Test
    void aTextThatIsLongerThanItsTypeIsNoValue()
    {
        for (Type type : List.of(VarcharType.createVarcharType(3), CharType.createCharType(3))) {
            assertEquals(utf8Slice("ab"), PartitionValue.parse(type, "ab", "p"));
            assertEquals(utf8Slice("äö\uD83D\uDE00"), PartitionValue.parse(type, "äö\uD83D\uDE00", "p"));
            TrinoException failure = assertThrows(TrinoException.class, () -> PartitionValue.parse(type, "abcd", "p=abcd"));
            assertEquals(BridgeErrorCode.INVALID_PARTITION_VALUE.toErrorCode(), failure.getErrorCode());

            PlannedFile file = new PlannedFile("file:///t/p=abcd/f", 0, 1, 1, 1, new PartitionEntry("p=abcd", List.of("abcd"), new boolean[1]), ReaderSpec.PARQUET, List.of());
            BridgeColumnHandle key = new BridgeColumnHandle("p", type, ColumnKind.PARTITION_KEY, 0);
            ConstantColumns constants = new ConstantColumns(List.of(key));
            assertFalse(constants.mayMatch(file, TupleDomain.withColumnDomains(Map.of(key, Domain.singleValue(type, utf8Slice("abc"))))));
            TupleDomain<BridgeColumnHandle> range = TupleDomain.withColumnDomains(Map.of(key, Domain.create(ValueSet.ofRanges(Range.greaterThan(type, utf8Slice("b"))), false)));
            assertThrows(TrinoException.class, () -> constants.mayMatch(file, range));
            assertThrows(TrinoException.class, () -> constants.blocks(file));
        }
    }
}
