package io.skipbridge.hive;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.exec.SerializationUtilities;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPNull;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;
import org.apache.hadoop.mapred.JobConf;
import org.junit.jupiter.api.Test;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Properties;
import java.util.Set;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestDescribedColumns
{
    @Test
    void columnsThatAPartitionDescribesOtherwise()
    {
        assertEquals(set(), otherwise("a,b,s", "int:int:string"));
        assertEquals(set(), otherwise("A,b,s", "int:int:string"));
        assertEquals(set("b"), otherwise("a,b,s", "int:tinyint:string"));
        assertEquals(set("b", "s"), otherwise("a", "int"));
        assertEquals(set("b"), otherwise("a,x,s", "int:int:string"));
        assertEquals(set("a", "b"), otherwise("b,a,s", "int:int:string"));
        assertEquals(set("s"), otherwise("a,b,s,t", "int:int:varchar(2):int"));
        assertEquals(set("a", "b", "s"), otherwise("", ""));
        PartitionDesc trimmed = new PartitionDesc(table(), new LinkedHashMap<>());
        trimmed.setProperties(new Properties());
        assertEquals(set(), DescribedColumns.otherwise(trimmed));
    }

    /** A law in Python asks the planner under the rule that these have. */
    @Test
    void theRuleIsThatOfTheVectors()
            throws Exception
    {
        JsonNode vectors = new ObjectMapper().readTree(new File("../../tests/vectors/hive_described.json"));
        assertTrue(vectors.size() > 10);
        for (JsonNode vector : vectors) {
            List<String> names = new ArrayList<>();
            List<String> types = new ArrayList<>();
            for (int i = 0; i < vector.get("own").size(); i += 2) {
                names.add(vector.get("own").get(i).asText());
                types.add(vector.get("own").get(i + 1).asText());
            }
            Set<String> expected = new HashSet<>();
            vector.get("otherwise").forEach(name -> expected.add(name.asText()));
            PartitionDesc partition = partition(String.join(",", names), String.join(":", types));
            partition.getTableDesc().setProperties(properties("a,b,s", "int:decimal(10,2):string"));
            assertEquals(expected, DescribedColumns.otherwise(partition), vector.get("name").asText());
        }
    }

    @Test
    void aFetchIsToldOfThem()
    {
        TableDesc table = table();
        DescribedColumns.tell(table, DescribedColumns.told(Collections.singletonList(partition("a,b,s", "int:int:string"))));
        assertNull(table.getJobProperties());
        DescribedColumns.tell(table, DescribedColumns.told(Arrays.asList(partition("a,b,s", "int:int:string"), partition("a,b,s", "int:bigint:string"))));
        JobConf job = new JobConf(new HiveConf());
        table.getJobProperties().forEach(job::set);
        assertFalse(DescribedColumns.concern(job));
        filter(job, "a");
        assertFalse(DescribedColumns.concern(job));
        filter(job, "B");
        assertTrue(DescribedColumns.concern(job));
    }

    /** The job of such a task has no plan: it knows what the descriptor of the table says. */
    @Test
    void aLocalTaskOfAMapJoinIsToldOfThem()
    {
        List<PartitionDesc> partitions = Arrays.asList(partition("a,b,s", "int:int:string"), partition("a,b,s", "int:bigint:string"));
        SkipFilesHook.tellTasks(partitions);
        for (PartitionDesc partition : partitions) {
            JobConf job = new JobConf(new HiveConf());
            partition.getTableDesc().getJobProperties().forEach(job::set);
            filter(job, "b");
            assertTrue(DescribedColumns.concern(job));
        }
    }

    @Test
    void namesWithCommas()
    {
        TableDesc table = new TableDesc();
        table.setProperties(properties("a\0x,y\0b", "int:int:int"));
        table.getProperties().setProperty("column.name.delimiter", "\0");
        PartitionDesc partition = partition("a\0x,y\0b", "int:bigint:tinyint");
        partition.getProperties().setProperty("column.name.delimiter", "\0");
        partition.setTableDesc(table);
        assertEquals(set("x,y", "b"), DescribedColumns.otherwise(partition));
        SkipFilesHook.tellFetch(Collections.singletonList(partition));
        for (String column : new String[] {"x,y", "b"}) {
            JobConf job = new JobConf(new HiveConf());
            partition.getTableDesc().getJobProperties().forEach(job::set);
            filter(job, column);
            assertTrue(DescribedColumns.concern(job));
        }
    }

    private static void filter(JobConf job, String column)
    {
        List<ExprNodeDesc> columns = new ArrayList<>();
        columns.add(new ExprNodeColumnDesc(TypeInfoFactory.intTypeInfo, column, "t", false));
        ExprNodeGenericFuncDesc filter = new ExprNodeGenericFuncDesc(TypeInfoFactory.booleanTypeInfo, new GenericUDFOPNull(), columns);
        job.set(TableScanDesc.FILTER_EXPR_CONF_STR, SerializationUtilities.serializeExpression(filter));
    }

    private static Set<String> otherwise(String columns, String types)
    {
        return DescribedColumns.otherwise(partition(columns, types));
    }

    private static PartitionDesc partition(String columns, String types)
    {
        PartitionDesc partition = new PartitionDesc(table(), new LinkedHashMap<>());
        partition.setProperties(properties(columns, types));
        return partition;
    }

    private static TableDesc table()
    {
        TableDesc table = new TableDesc();
        table.setProperties(properties("a,b,s", "int:int:string"));
        return table;
    }

    private static Properties properties(String columns, String types)
    {
        Properties properties = new Properties();
        properties.setProperty("columns", columns);
        properties.setProperty("columns.types", types);
        return properties;
    }

    private static Set<String> set(String... columns)
    {
        return new HashSet<>(Arrays.asList(columns));
    }
}
