import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IHMSHandler;
import org.apache.hadoop.hive.metastore.TSetIpAddressProcessor;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransportFactory;

/**
 * Hive 2.3's metastore, listening only on the loopback address. Its own main class listens on all addresses without authentication, and no
 * setting changes that. Run from source: {@code java -cp ... LoopbackMetastore.java PORT}.
 */
public final class LoopbackMetastore
{
    private LoopbackMetastore() {}

    public static void main(String[] arguments)
            throws Exception
    {
        int port = Integer.parseInt(arguments[0]);
        HiveConf configuration = new HiveConf(HiveMetaStore.HMSHandler.class);
        IHMSHandler handler = HiveMetaStore.newRetryingHMSHandler(
                new HiveMetaStore.HMSHandler("skipbridge", configuration, false), configuration, true);
        TServerSocket socket = new TServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        new TThreadPoolServer(new TThreadPoolServer.Args(socket)
                .processor(new TSetIpAddressProcessor<>(handler))
                .transportFactory(new TTransportFactory())
                .protocolFactory(new TBinaryProtocol.Factory())
                .minWorkerThreads(4)
                .maxWorkerThreads(200))
                .serve();
    }
}
