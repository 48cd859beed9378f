package io.skipbridge.trino.hive;

import com.fasterxml.jackson.annotation.JsonCreator;
import io.trino.plugin.hive.HiveTableHandle;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConstraintApplicationResult;
import io.trino.spi.connector.ProjectionApplicationResult;

import java.util.Optional;

/** Hive's handle of a table that is read by Hive's reader, with the reason, which EXPLAIN shows. Workers are not told the reason. */
public final class HiveReadTable
        extends HiveTableHandle
{
    private final String reason;

    HiveReadTable(HiveTableHandle table, String reason)
    {
        super(
                table.getSchemaName(),
                table.getTableName(),
                table.getTableParameters(),
                table.getPartitionColumns(),
                table.getDataColumns(),
                table.getPartitionNames(),
                table.getPartitions(),
                table.getCompactEffectivePredicate(),
                table.getEnforcedConstraint(),
                table.getTablePartitioning(),
                table.getBucketFilter(),
                table.getAnalyzePartitionValues(),
                table.getConstraintColumns(),
                table.getProjectedColumns(),
                table.getTransaction(),
                table.isRecordScannedFiles(),
                table.getMaxScannedFileSize());
        this.reason = reason;
    }

    @JsonCreator(mode = JsonCreator.Mode.DELEGATING)
    public static HiveReadTable read(HiveTableHandle table)
    {
        return new HiveReadTable(table, "");
    }

    /** What Hive answered about this table, with the reason kept. */
    Object keepReason(Object answer)
    {
        return answer instanceof Optional<?> optional ? optional.map(this::keep) : answer;
    }

    private Object keep(Object answer)
    {
        return switch (answer) {
            case HiveTableHandle table -> new HiveReadTable(table, reason);
            case ConstraintApplicationResult<?> result -> result.transform(this::keep);
            case ProjectionApplicationResult<?> result -> new ProjectionApplicationResult<>(
                    (ConnectorTableHandle) keep(result.getHandle()), result.getProjections(), result.getAssignments(), result.isPrecalculateStatistics());
            default -> answer;
        };
    }

    @Override
    public String toString()
    {
        return reason.isEmpty() ? super.toString() : "%s (read by Hive's reader: %s)".formatted(super.toString(), reason);
    }
}
