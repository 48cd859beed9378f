package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeStats;

import java.util.Properties;

/** What differs between Hive's versions: how a SerDe learns its columns. */
abstract class ColumnsSerDe
        extends AbstractSerDe
{
    @Override
    public void initialize(Configuration configuration, Properties properties)
    {
        initialize(properties);
    }

    abstract void initialize(Properties properties);

    @Override
    public SerDeStats getSerDeStats()
    {
        return null;
    }
}
