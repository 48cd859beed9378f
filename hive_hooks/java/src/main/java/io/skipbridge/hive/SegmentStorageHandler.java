package io.skipbridge.hive;

import org.apache.hadoop.hive.metastore.HiveMetaHook;
import org.apache.hadoop.hive.metastore.DefaultHiveMetaHook;
import org.apache.hadoop.hive.metastore.api.EnvironmentContext;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.mapred.InputFormat;

import java.util.Map;

/**
 * The storage handler of tables of segments, which skipbridge makes. Hive shows and drops them; it neither reads nor writes them. Their directory
 * holds no rows, so a listing of it would be a wrong answer.
 */
public class SegmentStorageHandler
        extends AlterableStorageHandler
{
    @Override
    @SuppressWarnings("rawtypes")
    public Class<? extends InputFormat> getInputFormatClass()
    {
        return SegmentInputFormat.class;
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
        return "INSERT into " + table + " is refused: it is a table of segments"
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
