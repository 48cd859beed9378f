import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** A resource manager and a node manager in one process, with the properties name=value of its arguments. */
public class MiniYarn {
    public static void main(String[] args) throws Exception {
        Configuration configuration = new YarnConfiguration();
        for (String property : args) {
            String[] pair = property.split("=", 2);
            configuration.set(pair[0], pair[1]);
        }
        // Its directories are target/test/data/yarn in the working directory.
        MiniYARNCluster cluster = new MiniYARNCluster("yarn", 1, 1, 1);
        cluster.init(configuration);
        // Containers are sessions of their own: they end with the cluster, not with its process group.
        Runtime.getRuntime().addShutdownHook(new Thread(cluster::stop));
        cluster.start();
        if (!cluster.waitForNodeManagersToConnect(60_000)) {
            throw new IllegalStateException("the node manager does not connect");
        }
        System.out.println("READY");
        Thread.currentThread().join();
    }
}
