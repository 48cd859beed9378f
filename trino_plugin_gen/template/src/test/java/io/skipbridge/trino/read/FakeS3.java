package io.skipbridge.trino.read;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.skipbridge.trino.read.storage.FileOpener;
import io.skipbridge.trino.read.storage.Store;
import io.skipbridge.trino.read.storage.TestTrinoFiles;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.security.ConnectorIdentity;

import java.io.Closeable;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A store of objects in memory that answers late. */
public final class FakeS3
        implements Closeable
{
    public static final long TIME = 1_700_000_000_000L;
    private static final Pattern RANGE = Pattern.compile("bytes=([0-9]+)-([0-9]+)");

    public final Map<String, byte[]> objects = new ConcurrentHashMap<>();
    volatile int leastMillis;
    private final HttpServer server;

    public FakeS3()
            throws IOException
    {
        server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        server.createContext("/bucket/", this::answer);
        server.start();
    }

    public FileOpener opener()
    {
        Map<String, String> properties = Map.of(
                "s3.endpoint", "http://127.0.0.1:" + server.getAddress().getPort(),
                "s3.region", "us-east-1",
                "s3.path-style-access", "true",
                "s3.aws-access-key", "key",
                "s3.aws-secret-key", "secret");
        return FileOpener.create(Set.of(Store.S3), properties, Optional.empty(), "test", new TestTrinoFiles.Context());
    }

    /** A session that has an identity alone. */
    public static ConnectorSession session()
    {
        return (ConnectorSession) Proxy.newProxyInstance(FakeS3.class.getClassLoader(), new Class<?>[] {ConnectorSession.class}, (_, _, _) -> ConnectorIdentity.ofUser("me"));
    }

    public static String uri(String key)
    {
        return "s3://bucket/" + key;
    }

    private void answer(HttpExchange exchange)
            throws IOException
    {
        try (exchange) {
            pause();
            String key = exchange.getRequestURI().getPath().substring("/bucket/".length());
            byte[] content = objects.get(key);
            Matcher range = RANGE.matcher(Optional.ofNullable(exchange.getRequestHeaders().getFirst("Range")).orElse(""));
            if (content == null) {
                exchange.sendResponseHeaders(404, -1);
                return;
            }
            exchange.getResponseHeaders().set("ETag", "\"%08x\"".formatted(Arrays.hashCode(content)));
            exchange.getResponseHeaders().set("Last-Modified", DateTimeFormatter.RFC_1123_DATE_TIME.format(Instant.ofEpochMilli(TIME).atOffset(ZoneOffset.UTC)));
            if (!range.matches()) {
                exchange.getResponseHeaders().set("Content-Length", String.valueOf(content.length));
                exchange.sendResponseHeaders(200, -1);
                return;
            }
            int from = Integer.parseInt(range.group(1));
            int end = Math.min(Integer.parseInt(range.group(2)) + 1, content.length);
            if (from >= end) {
                exchange.sendResponseHeaders(416, -1);
                return;
            }
            exchange.getResponseHeaders().set("Content-Range", "bytes %d-%d/%d".formatted(from, end - 1, content.length));
            exchange.sendResponseHeaders(206, end - from);
            exchange.getResponseBody().write(content, from, end - from);
        }
    }

    private void pause()
    {
        try {
            Thread.sleep(leastMillis + ThreadLocalRandom.current().nextInt(2));
        }
        catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close()
    {
        server.stop(0);
    }
}
