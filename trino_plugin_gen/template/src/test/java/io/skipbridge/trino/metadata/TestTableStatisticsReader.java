package io.skipbridge.trino.metadata;

import io.skipbridge.trino.wire.ColumnDescription;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.statistics.ColumnStatistics;
import io.trino.spi.statistics.TableStatistics;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;

import static io.trino.spi.type.BigintType.BIGINT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Estimates are advice: an impossible one is unknown, and never fails a query. */
class TestTableStatisticsReader
{
    private static final BridgeColumnHandle COLUMN = new BridgeColumnHandle("a", BIGINT, ColumnKind.DATA, 0);
    private static final double[] IMPOSSIBLE = {-1, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY};

    @Test
    void anImpossibleNumberOfRowsIsUnknown()
    {
        for (double rows : IMPOSSIBLE) {
            assertTrue(TableStatisticsReader.read(table(rows), Map.of()).getRowCount().isUnknown());
        }
    }

    @Test
    void impossibleEstimatesOfAColumnAreUnknown()
    {
        for (double value : IMPOSSIBLE) {
            TableStatistics statistics = TableStatisticsReader.read(table(1, column(value)), Map.of("a", COLUMN));
            assertEquals(ColumnStatistics.empty(), statistics.getColumnStatistics().get(COLUMN));
        }
    }

    @Test
    void aColumnThatTheQueryDoesNotKnowIsLeftOut()
    {
        TableStatistics statistics = TableStatisticsReader.read(table(7, column(1)), Map.of());
        assertEquals(7, statistics.getRowCount().getValue());
        assertTrue(statistics.getColumnStatistics().isEmpty());
    }

    private static TableDescription table(double rows, ColumnDescription... columns)
    {
        return new TableDescription("s", "t", List.of(columns), OptionalDouble.of(rows), "", "", Optional.empty(), Optional.empty(), Optional.empty(), "", "", "directory");
    }

    private static ColumnDescription column(double value)
    {
        OptionalDouble some = OptionalDouble.of(value);
        return new ColumnDescription("a", "bigint", "bigint", false, Optional.empty(), some, some, OptionalDouble.of(Double.NaN), some, some, false);
    }
}
