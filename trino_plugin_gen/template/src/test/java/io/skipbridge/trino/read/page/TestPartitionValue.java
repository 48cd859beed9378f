package io.skipbridge.trino.read.page;

import io.trino.spi.TrinoException;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Int128;
import io.trino.spi.type.TimestampType;
import org.junit.jupiter.api.Test;

import static io.airlift.slice.Slices.utf8Slice;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
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
}
