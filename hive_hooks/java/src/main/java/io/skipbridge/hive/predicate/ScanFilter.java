package io.skipbridge.hive.predicate;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Operator;
import org.apache.hadoop.hive.ql.exec.SerializationUtilities;
import org.apache.hadoop.hive.ql.exec.TableScanOperator;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.io.sarg.ConvertAstToSearchArg;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Finds the filter of the scan to which a job's input belongs. */
public final class ScanFilter
{
    private static final String PLAN = "hive.exec.plan";

    private ScanFilter() {}

    /**
     * The filter as Hive serialised it into the job; empty if there is none. Without a plan it serves as the key of the document: equal texts mean
     * equal filters.
     */
    public static String serialized(JobConf job)
    {
        return job.get(PLAN) != null ? "" : job.get(TableScanDesc.FILTER_EXPR_CONF_STR, "");
    }

    /**
     * The predicate that every row of the result satisfies, as a document of docs/reference/predicates.md; empty if there is none.
     *
     * <p>If there is a plan, the filters come from its scan operators, not from the job: the job may still hold the filter of another scan, and one
     * directory may belong to several scans.
     */
    public static String document(JobConf job)
    {
        if (job.get(PLAN) != null) {
            List<ExprNodeGenericFuncDesc> filters = filters(Utilities.getMapWork(job), FileInputFormat.getInputPaths(job));
            return filters.isEmpty() ? "" : ExpressionWriter.document(filters);
        }
        String serialized = job.get(TableScanDesc.FILTER_EXPR_CONF_STR);
        if (serialized != null) {
            ExprNodeGenericFuncDesc filter = SerializationUtilities.deserializeExpression(serialized);
            return ExpressionWriter.document(Collections.singletonList(filter));
        }
        SearchArgument argument = job.get(ConvertAstToSearchArg.SARG_PUSHDOWN) == null ? null : ConvertAstToSearchArg.createFromConf(job);
        return argument == null ? "" : SearchArgumentWriter.document(argument, types(job));
    }

    /** The columns that the predicate names, as far as it is known. */
    public static List<String> columns(JobConf job)
    {
        List<ExprNodeGenericFuncDesc> filters = new ArrayList<>();
        if (job.get(PLAN) != null) {
            filters.addAll(filters(Utilities.getMapWork(job), FileInputFormat.getInputPaths(job)));
        }
        else if (job.get(TableScanDesc.FILTER_EXPR_CONF_STR) != null) {
            filters.add(SerializationUtilities.deserializeExpression(job.get(TableScanDesc.FILTER_EXPR_CONF_STR)));
        }
        List<String> columns = new ArrayList<>();
        if (filters.isEmpty() && job.get(ConvertAstToSearchArg.SARG_PUSHDOWN) != null) {
            ConvertAstToSearchArg.createFromConf(job).getLeaves().forEach(leaf -> columns.add(leaf.getColumnName()));
        }
        filters.forEach(filter -> columns.addAll(filter.getCols()));
        return columns;
    }

    /** The distinct filters of all scans that read these paths; empty if one of them has no filter. */
    static List<ExprNodeGenericFuncDesc> filters(MapWork work, Path[] paths)
    {
        Map<String, ExprNodeGenericFuncDesc> filters = new LinkedHashMap<>();
        if (work == null || paths.length == 0) {
            return Collections.emptyList();
        }
        for (Path path : paths) {
            Collection<String> aliases = work.getPathToAliases().get(path);
            if (aliases == null || aliases.isEmpty()) {
                return Collections.emptyList();
            }
            for (String alias : aliases) {
                Operator<?> operator = work.getAliasToWork().get(alias);
                ExprNodeGenericFuncDesc filter = operator instanceof TableScanOperator ? ((TableScanOperator) operator).getConf().getFilterExpr() : null;
                if (filter == null) {
                    return Collections.emptyList();
                }
                filters.put(alias, filter);
            }
        }
        return new ArrayList<>(filters.values());
    }

    private static Map<String, String> types(JobConf job)
    {
        List<String> names = Arrays.asList(job.get("columns", "").split(","));
        List<TypeInfo> types = TypeInfoUtils.getTypeInfosFromTypeString(job.get("columns.types", ""));
        Map<String, String> found = new HashMap<>();
        for (int i = 0; i < Math.min(names.size(), types.size()); i++) {
            found.put(names.get(i), types.get(i).getTypeName());
        }
        return found;
    }
}
