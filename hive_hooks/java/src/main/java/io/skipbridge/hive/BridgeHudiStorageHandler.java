package io.skipbridge.hive;

import org.apache.hadoop.mapred.InputFormat;

/**
 * The storage handler over the base files of a Hudi table: all of a copy-on-write table, the read-optimised form of a merge-on-read table. Output
 * format and SerDe are those of Hudi's own tables, and the input format extends Hudi's.
 */
public class BridgeHudiStorageHandler
        extends BridgeStorageHandler
{
    @Override
    @SuppressWarnings("rawtypes")
    public Class<? extends InputFormat> getInputFormatClass()
    {
        return BridgeHudiInputFormat.class;
    }
}
