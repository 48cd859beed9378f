package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.WireType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

/** The law: a call ends within its time-out, in both directions, and takes no more than a bound. */
class TestPlannerClient
{
    @Test
    @Timeout(60)
    void aPlannerThatDoesNotReadHoldsNoQuery()
            throws IOException
    {
        try (ServerSocket server = new ServerSocket()) {
            server.setReceiveBufferSize(4096);
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            PlannerClient client = client(server, 300);
            assertThrows(SocketTimeoutException.class, () -> client.listSkippableFiles(request(12 << 20)));
        }
    }

    @Test
    void aRequestAboveTheBoundIsNotSent()
            throws IOException
    {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            PlannerClient client = client(server, 30_000);
            assertThrows(PlannerClient.TooLong.class, () -> client.listSkippableFiles(request(17 << 20)));
        }
    }

    /** Whatever is thrown: a place that is not given back is one call less for all queries of this process. */
    @Test
    void callsThatCannotBeginTakeNoPlaces()
            throws IOException
    {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            for (Error thrown : new Error[] {new OutOfMemoryError("unable to create native thread"), new StackOverflowError()}) {
                PlannerClient client = new PlannerClient((InetSocketAddress) server.getLocalSocketAddress(), 30_000, call -> {
                    throw thrown;
                });
                Class<? extends Throwable> wanted = thrown instanceof OutOfMemoryError ? IOException.class : StackOverflowError.class;
                for (int i = 0; i < 600; i++) {
                    Throwable found = assertThrows(wanted, () -> client.listSkippableFiles(request(1)));
                    assertFalse(String.valueOf(found.getMessage()).contains("have no answer yet"), found.getMessage());
                }
            }
        }
    }

    @Test
    void listsAreBoundedByWhatTheyCostHere()
    {
        byte[] notes = new byte[8 + 4 * 200_000];
        notes[0] = WireType.STRING;
        ByteBuffer.wrap(notes).putInt(1, 200_000);
        assertThrows(ProtocolException.class, () -> new BinaryReader(ByteBuffer.wrap(notes), PlannerClient.MOST_ELEMENTS).strings());
    }

    private static PlannerClient client(ServerSocket server, int timeoutMillis)
    {
        return new PlannerClient(new InetSocketAddress("127.0.0.1", server.getLocalPort()), timeoutMillis);
    }

    private static FileRequest request(int length)
    {
        char[] predicate = new char[length];
        Arrays.fill(predicate, 'x');
        return new FileRequest("s", "t", "q", "4.0.1", new String(predicate), Collections.emptyList(), "");
    }
}
