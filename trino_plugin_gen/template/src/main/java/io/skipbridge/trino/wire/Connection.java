package io.skipbridge.trino.wire;

import io.skipbridge.client.ProtocolException;

import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

import static java.lang.Math.toIntExact;
import static java.util.concurrent.CompletableFuture.delayedExecutor;
import static java.util.concurrent.TimeUnit.MILLISECONDS;

/** One socket to one planner process, framed; used by one thread at a time. */
final class Connection
        implements Closeable
{
    private static final int MAX_FRAME = 256 << 20;
    /** The system takes so many bytes of a connection, even if nobody reads them. */
    private static final int TAKEN_AT_ONCE = 32 << 10;

    private final Socket socket;
    private final Executor late;
    private final DataInputStream input;
    private final OutputStream output;
    private int sequence;

    Connection(InetSocketAddress address, Duration timeout)
            throws IOException
    {
        this.socket = new Socket();
        this.late = delayedExecutor(timeout.toMillis(), MILLISECONDS);
        try {
            int millis = toIntExact(timeout.toMillis());
            socket.setTcpNoDelay(true);
            socket.connect(address, millis);
            socket.setSoTimeout(millis);
            this.input = new DataInputStream(socket.getInputStream());
            this.output = socket.getOutputStream();
        }
        catch (Throwable e) {
            socket.close();
            throw e;
        }
    }

    int nextSequence()
    {
        return ++sequence;
    }

    /** Sends one frame and returns the whole reply. The connection is then ready for the next call. */
    ByteBuffer call(byte[] frame)
            throws IOException
    {
        send(frame);
        int length = input.readInt();
        if (length < 0 || length > MAX_FRAME) {
            throw new ProtocolException("frame of %d bytes, at most %d are accepted".formatted(length, MAX_FRAME));
        }
        byte[] reply = input.readNBytes(length);
        if (reply.length < length) {
            throw new EOFException("connection closed %d bytes into a reply of %d".formatted(reply.length, length));
        }
        return ByteBuffer.wrap(reply);
    }

    /** A socket has no timeout for writes: one that is late is ended by closing the socket. */
    private void send(byte[] frame)
            throws IOException
    {
        if (frame.length <= TAKEN_AT_ONCE) {
            output.write(frame);
            return;
        }
        AtomicBoolean expired = new AtomicBoolean();
        CompletableFuture<Void> closing = CompletableFuture.runAsync(() -> {
            expired.set(true); // before the write fails of it
            close();
        }, late);
        try {
            output.write(frame);
        }
        catch (IOException e) {
            if (expired.get()) {
                throw new SocketTimeoutException("a request of %d bytes was not taken in time".formatted(frame.length));
            }
            throw e;
        }
        finally {
            closing.cancel(false);
        }
    }

    @Override
    public void close()
    {
        try {
            socket.close();
        }
        catch (IOException e) {
            // the socket is given up, so a failure to close it changes nothing
        }
    }
}
