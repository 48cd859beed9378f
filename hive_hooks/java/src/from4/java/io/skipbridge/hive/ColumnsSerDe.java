package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;

import java.util.Properties;

/** What differs between Hive's versions: how a SerDe learns its columns. */
abstract class ColumnsSerDe
        extends AbstractSerDe
{
    @Override
    public void initialize(Configuration configuration, Properties table, Properties partition)
            throws SerDeException
    {
        super.initialize(configuration, table, partition);
        initialize(properties);
    }

    abstract void initialize(Properties properties);
}
