package io.skipbridge.hive;

import org.apache.hadoop.hive.ql.ddl.table.AlterTableType;
import org.apache.hadoop.hive.ql.metadata.DefaultStorageHandler;

/** From 4.0 on a storage handler must list the alterations it allows. This one also allows adding, dropping and moving partitions. */
abstract class AlterableStorageHandler
        extends DefaultStorageHandler
{
    @Override
    public boolean isAllowedAlterOperation(AlterTableType operation)
    {
        return operation == AlterTableType.ADDPARTITION || operation == AlterTableType.DROPPARTITION || operation == AlterTableType.ALTERLOCATION
                || super.isAllowedAlterOperation(operation);
    }
}
