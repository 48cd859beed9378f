package io.skipbridge.hive.segments;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;

import java.util.Properties;

/** What differs between Hive's versions. */
final class SerDes
{
    private SerDes() {}

    static void initialize(AbstractSerDe serde, Configuration configuration, Properties properties)
            throws SerDeException
    {
        serde.initialize(configuration, properties);
    }
}
