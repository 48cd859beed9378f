import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * A name node and a data node in one process: directory, a hdfs-site.xml or "", then RPC and HTTP
 * ports. With ports of a second name node the two are the name service "lab"; it takes over when
 * the directory gets a file "failover". If the configuration names a keytab, it is Kerberos's.
 */
public class MiniHdfs {
    public static void main(String[] args) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set("hdfs.minidfs.basedir", args[0]);
        if (!args[1].isEmpty()) {
            configuration.addResource(new Path(new File(args[1]).toURI()));
        }
        String keytab = configuration.get("dfs.namenode.keytab.file");
        if (keytab != null) {
            UserGroupInformation.setConfiguration(configuration);
            UserGroupInformation.loginUserFromKeytab(
                    configuration.get("dfs.namenode.kerberos.principal"), keytab);
        }
        MiniDFSCluster.Builder builder =
                new MiniDFSCluster.Builder(configuration).numDataNodes(1).format(true);
        boolean two = args.length > 4;
        if (two) {
            MiniDFSNNTopology.NSConf lab = new MiniDFSNNTopology.NSConf("lab");
            for (int i = 2; i < args.length; i += 2) {
                lab.addNN(
                        new MiniDFSNNTopology.NNConf("nn" + i / 2)
                                .setIpcPort(Integer.parseInt(args[i]))
                                .setHttpPort(Integer.parseInt(args[i + 1])));
            }
            builder.nnTopology(new MiniDFSNNTopology().addNameservice(lab));
        } else {
            builder.nameNodePort(Integer.parseInt(args[2]))
                    .nameNodeHttpPort(Integer.parseInt(args[3]));
        }
        MiniDFSCluster cluster = builder.build();
        if (two) {
            cluster.transitionToActive(0);
            cluster.waitActive(0);
        } else {
            cluster.waitActive();
        }
        System.out.println("READY");
        File wanted = new File(args[0], "failover");
        while (!two || !wanted.exists()) {
            Thread.sleep(100);
        }
        cluster.transitionToStandby(0);
        cluster.transitionToActive(1);
        System.out.println("FAILED OVER");
        Thread.currentThread().join();
    }
}
