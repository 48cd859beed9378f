package io.skipbridge.hive;

import io.skipbridge.hive.segments.Columns;
import org.apache.hadoop.hive.metastore.DefaultHiveMetaHook;
import org.apache.hadoop.hive.metastore.HiveMetaHook;
import org.apache.hadoop.hive.metastore.api.EnvironmentContext;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.ql.exec.SerializationUtilities;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.metadata.HiveStoragePredicateHandler;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.OperatorDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.Deserializer;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.JobConf;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * The storage handler of tables of segments, which skipbridge makes. Hive shows, reads and drops them; it does not write them. Their directory holds
 * no rows: the planner names the files.
 */
public class SegmentStorageHandler
        extends AlterableStorageHandler
        implements HiveStoragePredicateHandler
{
    /** The segments that the session chose, where no table property reaches. */
    static final String CHOSEN = "skipbridge.segments.chosen";

    private static final String TABLE = "skipbridge.segments.table";
    private static final String COLUMNS = "skipbridge.segments.columns";
    private static final String TYPES = "skipbridge.segments.types";

    @Override
    @SuppressWarnings("rawtypes")
    public Class<? extends InputFormat> getInputFormatClass()
    {
        return SegmentInputFormat.class;
    }

    @Override
    public Class<? extends AbstractSerDe> getSerDeClass()
    {
        return SegmentSerDe.class;
    }

    /** The scan's job learns which table it reads, and its columns as the query was compiled. */
    @Override
    public void configureInputJobProperties(TableDesc table, Map<String, String> properties)
    {
        String serde = table.getProperties().getProperty("serialization.lib", "");
        if (!serde.equals(SegmentSerDe.class.getName())) {
            throw new IllegalStateException(outdated(table.getTableName(), "the SerDe " + serde));
        }
        properties.put(TABLE, table.getTableName());
        properties.put(COLUMNS, table.getProperties().getProperty("columns", ""));
        properties.put(SkipFilesHook.TOLD, Settings.toTell(getConf()));
        properties.put(CHOSEN, Settings.segments(getConf()));
        properties.put(TYPES, table.getProperties().getProperty("columns.types", ""));
    }

    /** EXPLAIN shows what a scan reads. Hive asks for it from 4.0 on. */
    public Map<String, String> getOperatorDescProperties(OperatorDesc descriptor, Map<String, String> properties)
    {
        if (!(descriptor instanceof TableScanDesc)) {
            return properties;
        }
        Map<String, String> shown = properties == null ? new TreeMap<>() : new TreeMap<>(properties);
        try {
            shown.put("skipbridge", explained((TableScanDesc) descriptor));
        }
        catch (IOException | RuntimeException | LinkageError e) {
            shown.put("skipbridge", "unknown: " + e);
        }
        return shown;
    }

    private String explained(TableScanDesc scan)
            throws IOException
    {
        Map<String, String> told = new HashMap<>();
        configureInputJobProperties(Utilities.getTableDesc(scan.getTableMetadata()), told);
        JobConf job = new JobConf(getConf());
        told.forEach(job::set);
        job.unset("hive.exec.plan");
        if (scan.getFilterExpr() != null) {
            job.set(TableScanDesc.FILTER_EXPR_CONF_STR, SerializationUtilities.serializeExpression(scan.getFilterExpr()));
        }
        return SegmentPlans.explained(job, table(job), columns(job), HotColumns.of(job, scan));
    }

    private static String outdated(String table, String what)
    {
        return "TABLE_RECORD_OUTDATED: the metastore's record of the table of segments " + table + " has " + what
                + ", by which it cannot be read -> skipbridge segment refresh " + table;
    }

    /** The table that a job reads, {@code schema.table}. */
    static String table(JobConf job)
            throws IOException
    {
        String table = job.get(TABLE, "");
        if (table.indexOf('.') < 1) {
            String name = job.get("name", "DB.TABLE");
            throw new IOException(outdated(name, "no storage handler") + "; if CREATE TABLE LIKE made it, which copies no segments: DROP TABLE " + name
                    + ", then skipbridge table create " + name + " --format ...");
        }
        return table;
    }

    static Columns columns(JobConf job)
    {
        return new Columns(job.get(COLUMNS, ""), job.get(TYPES, ""));
    }

    /** The planner gets the whole predicate, and Hive still evaluates all of it. */
    @Override
    public DecomposedPredicate decomposePredicate(JobConf job, Deserializer deserializer, ExprNodeDesc predicate)
    {
        return BridgeStorageHandler.wholePredicate(predicate);
    }

    @Override
    public HiveMetaHook getMetaHook()
    {
        return new ReadOnly();
    }

    /** Hive calls this only while it plans an INSERT. */
    @Override
    public void configureOutputJobProperties(TableDesc table, Map<String, String> properties)
    {
        throw new UnsupportedOperationException(refusal(table.getTableName()));
    }

    private static String refusal(String table)
    {
        return "OPERATION_BLOCKED: INSERT into " + table + " is refused: it is a table of segments"
                + " -> write files anywhere, then skipbridge segment add " + table + " PATH";
    }

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

        /** Hive asks it from 4.0 on; before, Hive itself refuses all alterations but those of properties. */
        public void preAlterTable(Table table, EnvironmentContext context)
                throws MetaException
        {
            String name = table.getDbName() + "." + table.getTableName();
            throw new MetaException("ALTER TABLE " + name + " is refused: it is a table of segments -> skipbridge sql \"ALTER TABLE " + name + " ...\"");
        }

        @Override
        public void preCreateTable(Table table)
                throws MetaException
        {
            throw new MetaException("Hive does not make tables of segments -> skipbridge table create " + table.getDbName() + "." + table.getTableName() + " --format ...");
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
