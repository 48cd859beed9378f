package io.skipbridge.trino.wire;

import org.junit.jupiter.api.Test;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

class TestConnection
{
    /** Neither an answer is waited for without end, nor a reader of a request that is larger than the system's buffers. */
    @Test
    void aPlannerThatDoesNothingIsNotWaitedFor()
            throws IOException
    {
        for (int bytes : new int[] {4, 64 << 20}) {
            try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                    Connection connection = new Connection((InetSocketAddress) silent.getLocalSocketAddress(), Duration.ofMillis(300))) {
                assertThrows(SocketTimeoutException.class, () -> connection.call(new byte[bytes]));
            }
        }
    }

    @Test
    void aLargeRequestThatIsReadIsAnswered()
            throws IOException
    {
        byte[] request = new byte[8 << 20];
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Connection connection = new Connection((InetSocketAddress) server.getLocalSocketAddress(), Duration.ofSeconds(60))) {
            CompletableFuture<Integer> read = CompletableFuture.supplyAsync(() -> answered(server, request.length));
            for (int i = 0; i < 2; i++) {
                assertEquals(ByteBuffer.wrap(new byte[] {7, 8}), connection.call(request));
            }
            assertEquals(2, read.join());
        }
    }

    private static int answered(ServerSocket server, int length)
    {
        try (Socket client = server.accept()) {
            DataInputStream input = new DataInputStream(client.getInputStream());
            DataOutputStream output = new DataOutputStream(client.getOutputStream());
            int calls = 0;
            for (; calls < 2; calls++) {
                input.readFully(new byte[length]);
                output.writeInt(2);
                output.write(new byte[] {7, 8});
            }
            return calls;
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
