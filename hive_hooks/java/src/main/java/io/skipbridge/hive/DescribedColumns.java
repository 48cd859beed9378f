package io.skipbridge.hive;

import io.skipbridge.hive.predicate.ScanFilter;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Columns that a partition of Parquet files describes otherwise than its table. Hive may read them as the partition says, and converts them then: 1.25
 * becomes 1.3 in a decimal(5,1). The index knows values as the table says, so it tells nothing about such columns.
 */
final class DescribedColumns
{
    private static final String PLAN = "hive.exec.plan";
    /** By it the hook of plans tells a fetch: the job of a fetch knows no descriptor. */
    private static final String OF_FETCH = "skipbridge.described_otherwise";
    /** Another text than a comma stands between names where a name has one. */
    private static final String DELIMITER = "column.name.delimiter";
    private static final String COLUMNS = "columns";
    private static final String TYPES = "columns.types";

    private DescribedColumns() {}

    /** Whether the filter of a job names such a column of a partition that the job reads. */
    static boolean concern(JobConf job)
    {
        String otherwise = "";
        if (job.get(PLAN) == null) {
            otherwise = job.get(OF_FETCH, "");
        }
        else {
            MapWork work = Utilities.getMapWork(job);
            Map<Path, PartitionDesc> known = work == null ? Collections.emptyMap() : work.getPathToPartitionInfo();
            List<PartitionDesc> read = new ArrayList<>();
            for (Path path : FileInputFormat.getInputPaths(job)) {
                PartitionDesc partition = known.get(path);
                if (partition != null) {
                    read.add(partition);
                }
            }
            otherwise = told(read);
        }
        if (otherwise.isEmpty()) {
            return false;
        }
        for (String column : ScanFilter.columns(job)) {
            if (("," + otherwise + ",").contains("," + column.toLowerCase(Locale.ROOT) + ",")) {
                return true;
            }
        }
        return false;
    }

    /** Such columns of any of the partitions, separated by commas; empty if there is none. */
    static String told(Collection<PartitionDesc> partitions)
    {
        Set<String> otherwise = new HashSet<>();
        for (PartitionDesc partition : partitions) {
            otherwise.addAll(otherwise(partition));
        }
        return String.join(",", otherwise);
    }

    /**
     * Tells it to what fetches a table.
     *
     * @param otherwise what {@link #told} says of all partitions that are fetched
     */
    static void tell(TableDesc table, String otherwise)
    {
        if (!otherwise.isEmpty()) {
            Map<String, String> told = table.getJobProperties() == null ? new HashMap<>() : new HashMap<>(table.getJobProperties());
            told.put(OF_FETCH, otherwise);
            table.setJobProperties(told);
        }
    }

    /** In lower case. Hive pairs the columns of a partition and of its table by their place. */
    static Set<String> otherwise(PartitionDesc partition)
    {
        Properties table = partition.getTableDesc().getProperties();
        Properties own = partition.getProperties();
        if (own == null || (same(table, own, COLUMNS) && same(table, own, TYPES))) {
            return Collections.emptySet();
        }
        String delimiter = table.getProperty(DELIMITER, ",");
        List<String> names = names(table.getProperty(COLUMNS, ""), delimiter);
        List<String> ownNames = names(own.getProperty(COLUMNS, table.getProperty(COLUMNS, "")), own.getProperty(DELIMITER, delimiter));
        List<TypeInfo> types = TypeInfoUtils.getTypeInfosFromTypeString(table.getProperty(TYPES, ""));
        List<TypeInfo> ownTypes = TypeInfoUtils.getTypeInfosFromTypeString(own.getProperty(TYPES, table.getProperty(TYPES, "")));
        Set<String> otherwise = new HashSet<>();
        for (int i = 0; i < names.size(); i++) {
            boolean both = i < types.size() && i < ownNames.size() && i < ownTypes.size();
            if (!both || !names.get(i).equals(ownNames.get(i)) || !types.get(i).equals(ownTypes.get(i))) {
                otherwise.add(names.get(i));
            }
        }
        return otherwise;
    }

    /** Descriptors for tasks leave out what the partition has from its table. */
    private static boolean same(Properties table, Properties own, String name)
    {
        return own.getProperty(name) == null || own.getProperty(name).equals(table.getProperty(name, ""));
    }

    private static List<String> names(String columns, String delimiter)
    {
        return Arrays.asList(columns.toLowerCase(Locale.ROOT).split(Pattern.quote(delimiter)));
    }
}
