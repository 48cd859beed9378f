package io.skipbridge.trino.read.storage;

import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.Tracer;
import io.trino.spi.HostAddress;
import io.trino.spi.Node;
import io.trino.spi.NodeManager;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.security.ConnectorIdentity;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.Set;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

public class TestTrinoFiles
{
    private static final Map<String, String> S3 = Map.of(
            "s3.endpoint", "http://127.0.0.1:1",
            "s3.region", "us-east-1",
            "s3.path-style-access", "true",
            "s3.aws-access-key", "hidden-key",
            "s3.aws-secret-key", "hidden-secret");
    private static final Map<String, String> AZURE = Map.of(
            "azure.auth-type", "ACCESS_KEY",
            "azure.access-key", "aGlkZGVu");
    private static final Map<String, String> GCS = Map.of(
            "gcs.project-id", "project",
            "gcs.json-key", "{\"type\": \"authorized_user\", \"client_id\": \"a\", \"client_secret\": \"b\", \"refresh_token\": \"c\"}");

    @Test
    void takesTrinosPropertiesOfS3()
    {
        opens(Store.S3, S3, "s3://bucket/some file.parquet");
        opens(Store.S3, Map.of("s3.region", "us-east-1", "s3.max-connections", "7", "s3.requester-pays", "true"), "s3a://bucket/f");
    }

    @Test
    void takesASecurityMapping()
    {
        String problem = problem(Set.of(Store.S3), Map.of("s3.security-mapping.enabled", "true"));
        assertTrue(problem.contains("No security mapping source configured"), problem);
        Map<String, String> mapped = Map.of("s3.security-mapping.enabled", "true", "s3.security-mapping.config-file", "/dev/null");
        TrinoFiles.of(Set.of(Store.S3), mapped, "lake", new Context()).close();
    }

    @Test
    void takesTrinosPropertiesOfAzure()
    {
        assumeTrue(has(Store.AZURE), "built without");
        opens(Store.AZURE, AZURE, "abfss://container@account.dfs.core.windows.net/f");
        assertTrue(problem(Set.of(Store.AZURE), Map.of("azure.auth-typo", "OAUTH")).contains("azure.auth-typo"));
    }

    @Test
    void takesTrinosPropertiesOfGcs()
    {
        assumeTrue(has(Store.GCS), "built without");
        opens(Store.GCS, GCS, "gs://bucket/f");
        assertTrue(problem(Set.of(Store.GCS), Map.of("gcs.projekt-id", "x")).contains("gcs.projekt-id"));
    }

    @Test
    void saysWhatTheBuildLacks()
    {
        String hdfs = problem(Set.of(Store.HDFS), Map.of());
        assertTrue(hdfs.startsWith("fs.hadoop.enabled") && hdfs.contains("--storage hdfs") && hdfs.contains("plugin/hive/hdfs"), hdfs);
        for (Store store : new Store[] {Store.GCS, Store.AZURE}) {
            if (!has(store)) {
                String problem = problem(Set.of(store), Map.of());
                assertTrue(problem.contains(StorageModules.enabled(store)) && problem.contains("--storage " + store.option()), problem);
            }
        }
    }

    @Test
    void refusesOthers()
    {
        assertTrue(problem(Set.of(Store.S3), Map.of("s3.regoin", "us-east-1")).contains("s3.regoin"));
        assertTrue(problem(Set.of(Store.S3), Map.of("s3.aws-access-key", "hidden")).contains("go together"));
    }

    @Test
    void triesAgainAfterAFailure()
    {
        TrinoFiles files = TrinoFiles.of(Set.of(Store.S3), Map.of("s3.endpoint", "no uri", "s3.region", "us-east-1"), "lake", new Context());
        for (int attempt = 0; attempt < 2; attempt++) {
            String problem = assertThrows(TrinoException.class, () -> files.file(ConnectorIdentity.ofUser("me"), "s3://bucket/f")).getMessage();
            assertTrue(problem.contains("cannot be made") && problem.contains("Illegal character"), problem);
        }
        files.close();
    }

    @Test
    void makesNoClientAfterItWasClosed()
    {
        TrinoFiles files = TrinoFiles.of(Set.of(Store.S3), S3, "lake", new Context());
        files.close();
        String problem = assertThrows(TrinoException.class, () -> files.file(ConnectorIdentity.ofUser("me"), "s3://bucket/f")).getMessage();
        assertTrue(problem.contains("lake was dropped"), problem);
    }

    @Test
    void knowsWhetherStoresTellUsersApart()
    {
        assertFalse(TrinoFiles.tellsUsersApart(S3));
        assertFalse(TrinoFiles.tellsUsersApart(Map.of("hive.hdfs.impersonation.enabled", "false", "gcs.auth-type", "DEFAULT")));
        for (Map<String, String> each : List.of(
                Map.of("s3.security-mapping.enabled", "true"),
                Map.of("s3.security-mapping.config-file", "/mapping.json"),
                Map.of("hive.hdfs.impersonation.enabled", "true"),
                Map.of("gcs.use-access-token", "true"),
                Map.of("gcs.auth-type", "ACCESS_TOKEN"))) {
            assertTrue(TrinoFiles.tellsUsersApart(each), each.toString());
        }
    }

    @Test
    void masksSecretsWithoutQuotes()
    {
        Map<String, String> properties = Map.of("gcs.json-key", "hidden-json", "s3.path-style-access", "true", "s3.region", "us-east-1");
        assertEquals(
                "cannot parse ***, true, us-east-1, '***'",
                TrinoModule.masked("cannot parse hidden-json, true, us-east-1, 'us-east-1'", properties));
    }

    @Test
    void tellsNoValueOfAProperty()
    {
        String number = problem(Set.of(Store.S3), Map.of("s3.max-connections", "hidden"));
        assertTrue(number.contains("s3.max-connections") && !number.contains("hidden"), number);
    }

    private static void opens(Store store, Map<String, String> properties, String uri)
    {
        TrinoFiles files = TrinoFiles.of(Set.of(store), properties, "lake", new Context());
        try {
            assertTrue(files.reads(store));
            assertFalse(files.toString().contains("hidden"), files.toString());
            assertEquals(uri, files.file(ConnectorIdentity.ofUser("me"), uri).location().toString());
        }
        finally {
            files.close();
        }
    }

    private static boolean has(Store store)
    {
        try {
            Class.forName(store.module());
            return true;
        }
        catch (ClassNotFoundException e) {
            return false;
        }
    }

    private static String problem(Set<Store> stores, Map<String, String> properties)
    {
        TrinoException problem = assertThrows(TrinoException.class, () -> TrinoFiles.of(stores, properties, "lake", new Context()));
        assertFalse(problem.getCause() != null, "a cause may hold a secret");
        return problem.getMessage();
    }

    /** What the connector asks of its engine. */
    public static final class Context
            implements ConnectorContext, NodeManager, Node
    {
        @Override
        public NodeManager getNodeManager()
        {
            return this;
        }

        @Override
        public OpenTelemetry getOpenTelemetry()
        {
            return OpenTelemetry.noop();
        }

        @Override
        public Tracer getTracer()
        {
            return OpenTelemetry.noop().getTracer("test");
        }

        @Override
        public Set<Node> getAllNodes()
        {
            return Set.of(this);
        }

        @Override
        public Set<Node> getWorkerNodes()
        {
            return Set.of(this);
        }

        @Override
        public Node getCurrentNode()
        {
            return this;
        }

        // no override in all releases
        public String getEnvironment()
        {
            return "test";
        }

        @Override
        public String getHost()
        {
            return "127.0.0.1";
        }

        @Override
        public HostAddress getHostAndPort()
        {
            return HostAddress.fromParts("127.0.0.1", 1);
        }

        @Override
        public String getNodeIdentifier()
        {
            return "one";
        }

        @Override
        public String getVersion()
        {
            return "test";
        }

        @Override
        public boolean isCoordinator()
        {
            return true;
        }
    }
}
