package io.skipbridge.hive;

import org.apache.hadoop.hive.metastore.DefaultHiveMetaHook;
import org.apache.hadoop.hive.metastore.HiveMetaHook;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat;
import org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe;
import org.apache.hadoop.hive.ql.metadata.HiveStoragePredicateHandler;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.Deserializer;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.OutputFormat;

import java.util.Map;

/**
 * The storage handler for {@code CREATE EXTERNAL TABLE ... STORED BY 'io.skipbridge.hive.BridgeStorageHandler' LOCATION ...} on Parquet files
 * that another program writes. Every Hive version passes the filters of such tables to the input format, without a setting. Hive cannot insert
 * into them, and Spark cannot open them. Where plans are hooked, a plain table has neither limit.
 */
public class BridgeStorageHandler
        extends AlterableStorageHandler
        implements HiveStoragePredicateHandler
{
    @Override
    @SuppressWarnings("rawtypes")
    public Class<? extends InputFormat> getInputFormatClass()
    {
        return BridgeParquetInputFormat.class;
    }

    @Override
    @SuppressWarnings("rawtypes")
    public Class<? extends OutputFormat> getOutputFormatClass()
    {
        return MapredParquetOutputFormat.class;
    }

    @Override
    public Class<? extends AbstractSerDe> getSerDeClass()
    {
        return ParquetHiveSerDe.class;
    }

    @Override
    public HiveMetaHook getMetaHook()
    {
        return new ReadOnly();
    }

    @Override
    public void configureInputJobProperties(TableDesc table, Map<String, String> properties)
    {
        try {
            properties.put(SkipFilesHook.TOLD, Settings.toTell(getConf()));
        }
        catch (IllegalArgumentException e) {
            // The scan finds it again, tells it by name, and reads all files.
        }
    }

    /** Hive calls this only while it plans an INSERT. Inserts into partitions do not call the meta hook. */
    @Override
    public void configureOutputJobProperties(TableDesc table, Map<String, String> properties)
    {
        throw new UnsupportedOperationException(refusal(table.getTableName()));
    }

    /** The planner gets the whole predicate, and Hive still evaluates all of it. */
    @Override
    public DecomposedPredicate decomposePredicate(JobConf job, Deserializer deserializer, ExprNodeDesc predicate)
    {
        return wholePredicate(predicate);
    }

    static DecomposedPredicate wholePredicate(ExprNodeDesc predicate)
    {
        DecomposedPredicate both = new DecomposedPredicate();
        both.pushedPredicate = (ExprNodeGenericFuncDesc) predicate;
        both.residualPredicate = (ExprNodeGenericFuncDesc) predicate;
        return both;
    }

    private static String refusal(String table)
    {
        return "INSERT into " + table + " is refused: a table of skipbridge's storage handler is read only"
                + " -> write its files through a table STORED AS PARQUET at the same location, or with the program that wrote them";
    }

    /** Refuses inserts: Hive writes to such tables without a staging directory, so a failed query would leave partial output. */
    private static final class ReadOnly
            extends DefaultHiveMetaHook
    {
        @Override
        public void preInsertTable(Table table, boolean overwrite)
                throws MetaException
        {
            throw new MetaException(refusal(table.getDbName() + "." + table.getTableName()));
        }

        @Override
        public void commitInsertTable(Table table, boolean overwrite) {}

        @Override
        public void rollbackInsertTable(Table table, boolean overwrite) {}

        @Override
        public void preCreateTable(Table table)
                throws MetaException
        {
            if (table.getSd().getLocation() == null || !"EXTERNAL_TABLE".equals(table.getTableType())) {
                throw new MetaException(String.format("%s.%s has to be external: its files are somebody else's -> CREATE EXTERNAL TABLE ... LOCATION ...",
                        table.getDbName(), table.getTableName()));
            }
        }

        @Override
        public void rollbackCreateTable(Table table) {}

        @Override
        public void commitCreateTable(Table table) {}

        @Override
        public void preDropTable(Table table) {}

        @Override
        public void rollbackDropTable(Table table) {}

        @Override
        public void commitDropTable(Table table, boolean deleteData) {}
    }
}
