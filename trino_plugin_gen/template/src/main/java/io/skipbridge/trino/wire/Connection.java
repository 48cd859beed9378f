package io.skipbridge.trino.wire;

import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;

import static java.lang.Math.toIntExact;

/** One socket to one planner process, framed; used by one thread at a time. */
final class Connection
        implements Closeable
{
    private static final int MAX_FRAME = 256 << 20;

    private final Socket socket;
    private final DataInputStream input;
    private final OutputStream output;
    private int sequence;

    Connection(InetSocketAddress address, Duration timeout)
            throws IOException
    {
        this.socket = new Socket();
        try {
            int millis = toIntExact(timeout.toMillis());
            socket.setTcpNoDelay(true);
            socket.connect(address, millis);
            socket.setSoTimeout(millis);
            this.input = new DataInputStream(socket.getInputStream());
            this.output = socket.getOutputStream();
        }
        catch (IOException | RuntimeException e) {
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
        output.write(frame);
        output.flush();
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
