import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.TransactionalMetaStoreEventListener;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NotificationEvent;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.events.AddPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AlterPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AlterTableEvent;
import org.apache.hadoop.hive.metastore.events.CreateTableEvent;
import org.apache.hadoop.hive.metastore.events.DropPartitionEvent;
import org.apache.hadoop.hive.metastore.events.DropTableEvent;
import org.apache.hadoop.hive.metastore.events.ListenerEvent;
import org.apache.hadoop.hive.metastore.messaging.EventMessage;
import org.apache.hadoop.hive.metastore.messaging.MessageBuilder;

/**
 * Records events in a 4.0.1 metastore's own notification log, in the transaction that makes the alteration, as Hive's DbNotificationListener
 * does. Hive's own lies in an artifact that was not published for 4.0.1; log, numbers, messages and the calls that read them are Hive's.
 */
public final class RecordingDbNotificationListener
        extends TransactionalMetaStoreEventListener
{
    private final MessageBuilder messages = MessageBuilder.getInstance();

    public RecordingDbNotificationListener(Configuration configuration)
    {
        super(configuration);
    }

    @Override
    public void onCreateTable(CreateTableEvent event)
            throws MetaException
    {
        record(event, event.getTable(), messages.buildCreateTableMessage(event.getTable(), null));
    }

    @Override
    public void onDropTable(DropTableEvent event)
            throws MetaException
    {
        record(event, event.getTable(), messages.buildDropTableMessage(event.getTable()));
    }

    @Override
    public void onAlterTable(AlterTableEvent event)
            throws MetaException
    {
        EventMessage message = messages.buildAlterTableMessage(event.getOldTable(), event.getNewTable(), event.getIsTruncateOp(), event.getWriteId());
        record(event, event.getNewTable(), message);
    }

    @Override
    public void onAddPartition(AddPartitionEvent event)
            throws MetaException
    {
        record(event, event.getTable(), messages.buildAddPartitionMessage(event.getTable(), event.getPartitionIterator(), null));
    }

    @Override
    public void onDropPartition(DropPartitionEvent event)
            throws MetaException
    {
        record(event, event.getTable(), messages.buildDropPartitionMessage(event.getTable(), event.getPartitionIterator()));
    }

    @Override
    public void onAlterPartition(AlterPartitionEvent event)
            throws MetaException
    {
        EventMessage message = messages.buildAlterPartitionMessage(
                event.getTable(), event.getOldPartition(), event.getNewPartition(), event.getIsTruncateOp(), event.getWriteId());
        record(event, event.getTable(), message);
    }

    private static void record(ListenerEvent event, Table table, EventMessage message)
            throws MetaException
    {
        if (!event.getStatus()) {
            return;
        }
        int now = (int) (System.currentTimeMillis() / 1000);
        NotificationEvent entry = new NotificationEvent(0, now, message.getEventType().toString(), message.toString());
        entry.setCatName(table.getCatName());
        entry.setDbName(table.getDbName());
        entry.setTableName(table.getTableName());
        entry.setMessageFormat("json-0.2");
        event.getIHMSHandler().getMS().addNotificationEvent(entry);
    }
}
