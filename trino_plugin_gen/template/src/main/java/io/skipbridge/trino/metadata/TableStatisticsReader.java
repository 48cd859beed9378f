package io.skipbridge.trino.metadata;

import io.skipbridge.trino.wire.ColumnDescription;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.statistics.ColumnStatistics;
import io.trino.spi.statistics.DoubleRange;
import io.trino.spi.statistics.Estimate;
import io.trino.spi.statistics.TableStatistics;

import java.util.Map;
import java.util.OptionalDouble;

/** Converts the planner's estimates for the optimiser. An impossible number becomes unknown. */
final class TableStatisticsReader
{
    private TableStatisticsReader() {}

    static TableStatistics read(TableDescription table, Map<String, BridgeColumnHandle> handles)
    {
        Estimate rows = estimate(table.rowCount(), Double.MAX_VALUE);
        if (rows.isUnknown()) {
            return TableStatistics.empty();
        }
        TableStatistics.Builder statistics = TableStatistics.builder().setRowCount(rows);
        for (ColumnDescription column : table.columns()) {
            BridgeColumnHandle handle = handles.get(column.name());
            // a column that was added meanwhile
            if (handle != null) {
                statistics.setColumnStatistics(handle, column(column));
            }
        }
        return statistics.build();
    }

    /** Whether the description has the estimates of columns, not only that of rows. */
    static boolean complete(TableDescription table)
    {
        return table.rowCount().isPresent() && table.columns().stream().anyMatch(column -> column.nullsFraction().isPresent() || column.distinctCount().isPresent() || column.low().isPresent());
    }

    private static ColumnStatistics column(ColumnDescription column)
    {
        ColumnStatistics.Builder statistics = ColumnStatistics.builder()
                .setNullsFraction(estimate(column.nullsFraction(), 1))
                .setDistinctValuesCount(estimate(column.distinctCount(), Double.MAX_VALUE))
                .setDataSize(estimate(column.dataBytes(), Double.MAX_VALUE));
        if (column.low().isPresent() && column.high().isPresent() && column.low().getAsDouble() <= column.high().getAsDouble()) {
            statistics.setRange(new DoubleRange(column.low().getAsDouble(), column.high().getAsDouble()));
        }
        return statistics.build();
    }

    private static Estimate estimate(OptionalDouble value, double most)
    {
        boolean known = value.isPresent() && value.getAsDouble() >= 0 && value.getAsDouble() <= most;
        return known ? Estimate.of(value.getAsDouble()) : Estimate.unknown();
    }
}
