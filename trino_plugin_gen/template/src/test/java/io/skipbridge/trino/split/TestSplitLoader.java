package io.skipbridge.trino.split;

import io.skipbridge.trino.Planners;
import io.skipbridge.trino.wire.PlanRequest;
import io.skipbridge.trino.wire.PlannerAddress;
import io.trino.spi.type.TypeManager;
import org.junit.jupiter.api.Test;

import java.io.DataInputStream;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import static io.trino.spi.type.BigintType.BIGINT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

/** A plan is kept open while the engine takes no splits, and closed when it gives up the scan. A socket replies with the recorded frames. */
class TestSplitLoader
{
    private static final Path FRAMES = Path.of("../../tests/vectors/wire");

    private final List<String> methods = Collections.synchronizedList(new ArrayList<>());
    private final CountDownLatch asked = new CountDownLatch(1);
    private final CountDownLatch open = new CountDownLatch(1);
    private final CountDownLatch kept = new CountDownLatch(2);
    private ServerSocket door;

    @Test
    void aScanGivenUpWhileItsPlanOpensClosesThePlan()
            throws Exception
    {
        assumeTrue(Files.exists(FRAMES), "the golden frames are in the repository only");
        door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Thread.ofVirtual().start(this::listen);
        SplitQueue queue = new SplitQueue(10, SplitPlacement.ANYWHERE);
        PlanRequest request = new PlanRequest("db", "t", "q", "476", "", List.of(), OptionalLong.empty(), Map.of(), "");
        try (Planners planners = new Planners(List.of(new PlannerAddress("127.0.0.1", door.getLocalPort())), Duration.ofSeconds(30))) {
            SplitLoader loader = new SplitLoader(planners, types(), new ScanRequest(request, "", Optional.empty(), List.of()), null, queue);
            Thread thread = Thread.ofVirtual().start(loader);
            asked.await();
            loader.stop();
            open.countDown();
            thread.join();
        }
        finally {
            door.close();
        }
        assertEquals(List.of("health", "plan", "close_plan"), methods);
        assertTrue(queue.finished());
    }

    @Test
    void aPlanIsKeptOpenWhileTheQueueIsFull()
            throws Exception
    {
        assumeTrue(Files.exists(FRAMES), "the golden frames are in the repository only");
        door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        open.countDown();
        Thread.ofVirtual().start(this::listen);
        SplitQueue full = new SplitQueue(0, SplitPlacement.ANYWHERE);
        PlanRequest request = new PlanRequest("db", "t", "q", "476", "", List.of(), OptionalLong.empty(), Map.of(), "");
        try (Planners planners = new Planners(List.of(new PlannerAddress("127.0.0.1", door.getLocalPort())), Duration.ofSeconds(30))) {
            SplitLoader loader = new SplitLoader(planners, types(), new ScanRequest(request, "", Optional.empty(), List.of()), null, full, Duration.ofMillis(10));
            Thread thread = Thread.ofVirtual().start(loader);
            assertTrue(kept.await(30, TimeUnit.SECONDS));
            loader.stop();
            thread.join();
        }
        finally {
            door.close();
        }
        assertTrue(methods.contains("close_plan"), methods::toString);
    }

    private static TypeManager types()
    {
        return (TypeManager) Proxy.newProxyInstance(TypeManager.class.getClassLoader(), new Class<?>[] {TypeManager.class}, (_, _, _) -> BIGINT);
    }

    private void listen()
    {
        while (!door.isClosed()) {
            try {
                Socket socket = door.accept();
                // the call that keeps a plan open and the one that closes it may have a connection each
                Thread.ofVirtual().start(() -> serve(socket));
            }
            catch (IOException e) {
                // the door was closed
            }
        }
    }

    private void serve(Socket socket)
    {
        try (socket; DataInputStream input = new DataInputStream(socket.getInputStream())) {
            while (true) {
                reply(socket, ByteBuffer.wrap(input.readNBytes(input.readInt())));
            }
        }
        catch (IOException | InterruptedException e) {
            // the client left
        }
    }

    private void reply(Socket socket, ByteBuffer call)
            throws IOException, InterruptedException
    {
        byte[] name = new byte[call.getInt(4)];
        call.get(8, name);
        String method = new String(name, StandardCharsets.UTF_8);
        methods.add(method);
        if (method.equals("plan")) {
            asked.countDown();
            open.await();
        }
        if (method.equals("apply_dynamic_filter")) {
            kept.countDown();
        }
        String frame = new String(Files.readAllBytes(FRAMES.resolve(method + ".reply.bin")), StandardCharsets.ISO_8859_1)
                .replace("127.0.0.1:40001", "127.0.0.1:%5d".formatted(door.getLocalPort()))
                .replace("127.0.0.1:9528", "of the address");
        byte[] bytes = frame.getBytes(StandardCharsets.ISO_8859_1);
        // a reply has the sequence number of its call
        ByteBuffer.wrap(bytes).putInt(12 + name.length, call.getInt(8 + name.length));
        socket.getOutputStream().write(bytes);
    }
}
