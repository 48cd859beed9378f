package io.skipbridge.hive;

import io.skipbridge.client.JsonText;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * How a query reads files that mean what their table says: the properties that Hive gives to the SerDe, and the columns. The planner names a file only
 * if the index has read it in the same way.
 */
final class Declaration
{
    static final Function<JobConf, String> NONE = job -> "";

    private static final String PLAN = "hive.exec.plan";
    /** By it the hook of plans tells how a fetch reads: the job of a fetch knows no descriptor. */
    private static final String OF_FETCH = "skipbridge.declaration";
    /** A setting of a session that changes where lines end. */
    private static final String LINE_END = "textinputformat.record.delimiter";
    private static final String COLUMNS = "columns";
    private static final String TYPES = "columns.types";

    private Declaration() {}

    /** As JSON; empty if it is not known, or if the job reads in several ways. */
    static String of(JobConf job)
    {
        if (job.get(LINE_END) != null) {
            return "";
        }
        if (job.get(PLAN) == null) {
            return job.get(OF_FETCH, "");
        }
        MapWork work = Utilities.getMapWork(job);
        Map<Path, PartitionDesc> known = work == null ? null : work.getPathToPartitionInfo();
        Map<Path, PartitionDesc> read = new HashMap<>();
        for (Path path : FileInputFormat.getInputPaths(job)) {
            read.put(path, known == null ? null : known.get(path));
        }
        return of(read.values());
    }

    /** As JSON; empty if one is null, or if they differ. */
    static String of(Collection<PartitionDesc> partitions)
    {
        String found = "";
        for (PartitionDesc partition : partitions) {
            String one = partition == null ? "" : of(partition.getTableDesc().getProperties(), partition.getProperties());
            if (one.isEmpty() || (!found.isEmpty() && !found.equals(one))) {
                return "";
            }
            found = one;
        }
        return found;
    }

    /** Tells it to the fetch of a table. */
    static void tell(TableDesc table, String declaration)
    {
        if (!declaration.isEmpty()) {
            Map<String, String> told = table.getJobProperties() == null ? new HashMap<>() : new HashMap<>(table.getJobProperties());
            told.put(OF_FETCH, declaration);
            table.setJobProperties(told);
        }
    }

    /** Hive gives a SerDe the properties of the table, and in their place those that the partition has too. */
    static String of(Properties table, Properties partition)
    {
        Map<String, String> properties = new TreeMap<>();
        for (Properties each : new Properties[] {table, partition == null ? table : partition}) {
            each.forEach((name, value) -> properties.put(String.valueOf(name), String.valueOf(value)));
        }
        for (String name : new String[] {COLUMNS, TYPES}) {
            // A partition with columns of its own is read by them, and its values are converted.
            if (!properties.getOrDefault(name, "").equals(table.getProperty(name))) {
                return "";
            }
        }
        String[] names = properties.get(COLUMNS).split(",");
        List<TypeInfo> types = TypeInfoUtils.getTypeInfosFromTypeString(properties.get(TYPES));
        if (names.length != types.size()) {
            return "";
        }
        JsonText json = new JsonText().open('{').name("properties").open('{');
        properties.forEach((name, value) -> {
            if (isOfReaders(name)) {
                json.field(name, value);
            }
        });
        json.close('}').name(COLUMNS).open('[');
        for (int i = 0; i < names.length; i++) {
            json.open('[').string(names[i]).string(types.get(i).getTypeName()).close(']');
        }
        return json.close(']').close('}').toString();
    }

    /** The planner knows which ones matter; what tools and statistics keep in a record is long, and differs from partition to partition. */
    private static boolean isOfReaders(String name)
    {
        return !name.startsWith("spark.") && !name.startsWith("impala.") && !name.startsWith("partition_columns") && !name.startsWith("COLUMN_STATS")
                && !name.startsWith("num") && !name.startsWith("raw") && !name.startsWith("total") && !name.startsWith("transient_")
                && !name.startsWith("serialization.ddl") && !name.equals("location") && !name.equals("columns.comments") && !name.startsWith("last_modified");
    }
}
