package io.skipbridge.trino;

import io.skipbridge.trino.wire.PlannerAddress;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

/** One address with two processes behind it: a query keeps to one of them. */
class TestPlanners
{
    private static final Path HEALTH = Path.of("../../tests/vectors/wire/health.reply.bin");

    private final Set<PlannerAddress> processes = new HashSet<>();
    private ServerSocket door;
    private Planners planners;
    private volatile String reply = "";

    @BeforeEach
    void listen()
            throws IOException
    {
        assumeTrue(Files.exists(HEALTH), "the golden frames are in the repository only");
        door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        planners = new Planners(List.of(new PlannerAddress("127.0.0.1", door.getLocalPort())), Duration.ofSeconds(30));
        behind(40001, 40002);
        Thread.ofVirtual().start(this::answer);
    }

    @AfterEach
    void close()
            throws IOException
    {
        if (door != null) {
            planners.close();
            door.close();
        }
    }

    @Test
    void aQueryKeepsToOneProcess()
    {
        Set<PlannerAddress> called = new HashSet<>();
        for (int i = 0; i < 50; i++) {
            String queryId = "20260102_030405_%05d_abcde".formatted(i);
            PlannerAddress first = planners.call(queryId, client -> client.address());
            assertEquals(first, planners.call(queryId, client -> client.address()));
            called.add(first);
        }
        assertEquals(processes, called);
    }

    @Test
    void processesThatWereRestartedAreFoundAgain()
    {
        planners.call("q", client -> client.address());
        Set<PlannerAddress> gone = Set.copyOf(processes);
        behind(40003, 40004);
        PlannerAddress found = planners.call("q", client -> {
            if (gone.contains(client.address())) {
                throw new IOException("connection refused");
            }
            return client.address();
        });
        assertTrue(processes.contains(found) && !gone.contains(found));
    }

    @Test
    void aProcessThatTimesOutIsNotAskedAgain()
    {
        AtomicInteger calls = new AtomicInteger();
        TrinoException failure = assertThrows(TrinoException.class, () -> planners.call("q", _ -> {
            calls.incrementAndGet();
            throw new SocketTimeoutException("no reply");
        }));
        assertTrue(failure.getMessage().contains("no reply"));
        assertTrue(failure.getMessage().contains("skipbridge doctor"), failure.getMessage());
        assertTrue(!failure.getMessage().contains("skipbridge serve"), failure.getMessage());
        assertEquals(1, calls.get());
    }

    @Test
    void aPlannerThatIsAwayIsTriedAgain()
    {
        AtomicInteger calls = new AtomicInteger();
        String found = planners.call("q", _ -> {
            if (calls.incrementAndGet() < 6) {
                throw new ConnectException("connection refused");
            }
            return "back";
        });
        assertEquals("back", found);
    }

    @Test
    void aPlannerThatStaysAwayIsTold()
    {
        try (Planners hasty = new Planners(List.of(new PlannerAddress("127.0.0.1", door.getLocalPort())), Duration.ofSeconds(30), Duration.ZERO)) {
            TrinoException failure = assertThrows(TrinoException.class, () -> hasty.call("q", _ -> {
                throw new ConnectException("connection refused");
            }));
            assertTrue(failure.getMessage().contains("skipbridge serve"), failure.getMessage());
        }
    }

    private void behind(int first, int second)
    {
        processes.clear();
        processes.addAll(List.of(new PlannerAddress("127.0.0.1", first), new PlannerAddress("127.0.0.1", second)));
        try {
            reply = new String(Files.readAllBytes(HEALTH), StandardCharsets.ISO_8859_1)
                    .replace("127.0.0.1:40001", "127.0.0.1:" + first)
                    .replace("127.0.0.1:40002", "127.0.0.1:" + second);
        }
        catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private void answer()
    {
        while (true) {
            try {
                Socket socket = door.accept();
                DataInputStream input = new DataInputStream(socket.getInputStream());
                input.readNBytes(ByteBuffer.wrap(input.readNBytes(4)).getInt());
                socket.getOutputStream().write(reply.getBytes(StandardCharsets.ISO_8859_1));
            }
            catch (IOException e) {
                return;
            }
        }
    }
}
