package io.skipbridge.hive;

import org.apache.hadoop.hive.ql.metadata.DefaultStorageHandler;

/** Before 4.0 Hive does not ask storage handlers which alterations they allow. */
abstract class AlterableStorageHandler
        extends DefaultStorageHandler {}
