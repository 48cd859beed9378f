import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node and a data node in one process: directory, RPC port, HTTP port. */
public class MiniHdfs {
    public static void main(String[] args) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set("hdfs.minidfs.basedir", args[0]);
        MiniDFSCluster cluster =
                new MiniDFSCluster.Builder(configuration)
                        .numDataNodes(1)
                        .format(true)
                        .nameNodePort(Integer.parseInt(args[1]))
                        .nameNodeHttpPort(Integer.parseInt(args[2]))
                        .build();
        cluster.waitActive();
        System.out.println("READY");
        Thread.currentThread().join();
    }
}
