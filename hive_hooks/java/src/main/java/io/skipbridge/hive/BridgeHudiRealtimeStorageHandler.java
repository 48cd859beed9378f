package io.skipbridge.hive;

import org.apache.hadoop.mapred.InputFormat;

/** The storage handler over the file slices of a merge-on-read table of Hudi, merged with their logs. */
public class BridgeHudiRealtimeStorageHandler
        extends BridgeStorageHandler
{
    @Override
    @SuppressWarnings("rawtypes")
    public Class<? extends InputFormat> getInputFormatClass()
    {
        return BridgeHudiRealtimeInputFormat.class;
    }
}
