package io.skipbridge.hive;

import org.apache.hadoop.hive.ql.ddl.table.AlterTableType;
import org.apache.hadoop.hive.ql.metadata.DefaultStorageHandler;

/** From 4.0 on a handler says which alterations it allows; partitions come and go. */
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
