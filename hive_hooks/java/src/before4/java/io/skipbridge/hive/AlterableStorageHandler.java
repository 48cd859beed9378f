package io.skipbridge.hive;

import org.apache.hadoop.hive.ql.metadata.DefaultStorageHandler;

/** Before 4.0 Hive asks no handler which alterations it allows. */
abstract class AlterableStorageHandler
        extends DefaultStorageHandler {}
