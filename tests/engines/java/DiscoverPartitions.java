import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.PartitionManagementTask;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/** Runs once what a metastore's housekeeping does to tables with {@code discover.partitions}. */
public final class DiscoverPartitions {
    private DiscoverPartitions() {}

    /** @param arguments the metastore's URI */
    public static void main(String[] arguments) {
        Configuration settings = MetastoreConf.newMetastoreConf();
        MetastoreConf.setVar(settings, MetastoreConf.ConfVars.THRIFT_URIS, arguments[0]);
        PartitionManagementTask task = new PartitionManagementTask();
        task.setConf(settings);
        task.run();
        System.exit(0);
    }
}
