package io.skipbridge.hive;

import io.skipbridge.client.JsonText;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Operator;
import org.apache.hadoop.hive.ql.exec.TableScanOperator;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;

import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.function.Function;

/**
 * The columns and partition keys, names and types, that a scan was compiled with. A table may change before its query lists files, and the planner
 * answers under exactly these or not at all.
 */
final class CompiledColumns
{
    private static final String PLAN = "hive.exec.plan";
    private static final String COLUMNS = "schema.evolution.columns";
    private static final String TYPES = "schema.evolution.columns.types";
    private static final String KEYS = "partition_columns";
    private static final String KEY_TYPES = "partition_columns.types";

    private CompiledColumns() {}

    /** As JSON; empty if they are not known, or if the job reads several tables at once. */
    static String of(JobConf job)
    {
        if (job.get(PLAN) == null) {
            return of(job.get(COLUMNS), job.get(TYPES), job::get);
        }
        MapWork work = Utilities.getMapWork(job);
        String found = "";
        for (Path path : FileInputFormat.getInputPaths(job)) {
            Collection<String> aliases = work == null ? null : work.getPathToAliases().get(path);
            PartitionDesc partition = work == null ? null : work.getPathToPartitionInfo().get(path);
            if (aliases == null || aliases.isEmpty() || partition == null) {
                return "";
            }
            for (String alias : aliases) {
                Operator<?> scan = work.getAliasToWork().get(alias);
                String one = scan instanceof TableScanOperator ? of((TableScanOperator) scan, partition) : "";
                if (one.isEmpty() || !(found.isEmpty() || found.equals(one))) {
                    return "";
                }
                found = one;
            }
        }
        return found;
    }

    private static String of(TableScanOperator scan, PartitionDesc partition)
    {
        return of(scan.getSchemaEvolutionColumns(), scan.getSchemaEvolutionColumnsTypes(), partition.getTableDesc().getProperties()::getProperty);
    }

    /** @param properties of the table */
    static String of(String columns, String types, Function<String, String> properties)
    {
        if (columns == null || types == null) {
            return "";
        }
        List<String> keys = words(properties.apply(KEYS), "/");
        List<String> keyTypes = words(properties.apply(KEY_TYPES), ":");
        List<String> names = words(columns, ",");
        List<TypeInfo> found = TypeInfoUtils.getTypeInfosFromTypeString(types);
        if (names.size() != found.size() || keys.size() != keyTypes.size()) {
            return "";
        }
        JsonText json = new JsonText().open('{').name("columns").open('[');
        for (int i = 0; i < names.size(); i++) {
            json.open('[').string(names.get(i)).string(found.get(i).getTypeName()).close(']');
        }
        json.close(']').name("keys").open('[');
        for (int i = 0; i < keys.size(); i++) {
            json.open('[').string(keys.get(i)).string(keyTypes.get(i)).close(']');
        }
        return json.close(']').close('}').toString();
    }

    private static List<String> words(String text, String separator)
    {
        return text == null || text.isEmpty() ? Collections.emptyList() : Arrays.asList(text.split(separator, -1));
    }
}
