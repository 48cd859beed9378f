package io.skipbridge.hive.predicate;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.CompilationOpContext;
import org.apache.hadoop.hive.ql.exec.TableScanOperator;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPNull;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** Which scans of a plan read a directory, and by which filters. */
class TestScanFilter
{
    private static final Path DIRECTORY = new Path("file:/t/p=1");
    private static final Path OTHER = new Path("file:/t/p=2");

    private final MapWork work = new MapWork();

    @Test
    void oneScan()
    {
        ExprNodeGenericFuncDesc filter = filter("a");
        scan("a", DIRECTORY, filter);
        assertEquals(Collections.singletonList(filter), ScanFilter.filters(work, new Path[] {DIRECTORY}));
    }

    @Test
    void aDirectoryOfTwoScansIsReadByBothFilters()
    {
        scan("a", DIRECTORY, filter("a"));
        scan("b", DIRECTORY, filter("b"));
        scan("b", OTHER, filter("b"));
        assertEquals(2, ScanFilter.filters(work, new Path[] {DIRECTORY, OTHER}).size());
    }

    @Test
    void aScanThatWantsAllRowsGetsThem()
    {
        scan("a", DIRECTORY, filter("a"));
        scan("b", DIRECTORY, null);
        assertEquals(Collections.emptyList(), ScanFilter.filters(work, new Path[] {DIRECTORY}));
    }

    @Test
    void aPathThatThePlanDoesNotKnow()
    {
        scan("a", DIRECTORY, filter("a"));
        assertEquals(Collections.emptyList(), ScanFilter.filters(work, new Path[] {DIRECTORY, OTHER}));
        assertEquals(Collections.emptyList(), ScanFilter.filters(null, new Path[] {DIRECTORY}));
    }

    private void scan(String alias, Path path, ExprNodeGenericFuncDesc filter)
    {
        TableScanDesc description = new TableScanDesc(alias, null);
        description.setFilterExpr(filter);
        TableScanOperator operator = new TableScanOperator(new CompilationOpContext());
        operator.setConf(description);
        work.addPathToAlias(path, alias);
        work.getAliasToWork().put(alias, operator);
    }

    private static ExprNodeGenericFuncDesc filter(String column)
    {
        List<ExprNodeDesc> children = new ArrayList<>();
        children.add(new ExprNodeColumnDesc(TypeInfoFactory.intTypeInfo, column, "t", false));
        return new ExprNodeGenericFuncDesc(TypeInfoFactory.booleanTypeInfo, new GenericUDFOPNull(), children);
    }
}
