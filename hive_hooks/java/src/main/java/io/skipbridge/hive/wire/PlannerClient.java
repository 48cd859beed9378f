package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.BinaryWriter;
import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.Reply;
import io.skipbridge.client.WireType;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Function;

/** Calls one planner process. Opens a connection per call, because a query makes few calls. */
public final class PlannerClient
{
    static final int PROTOCOL = Reply.PROTOCOL;

    /** The planner cuts an answer about files to it. */
    static final int MAX_ANSWER = 32 << 20;
    private static final int MAX_REQUEST = 16 << 20;
    /** Of a list or a map in an answer. */
    static final int MOST_ELEMENTS = 100_000;
    private static final int MOST_CALLS = 256;
    private static final Semaphore CALLS = new Semaphore(MOST_CALLS);
    private static final int MOST_SPLITS = 5_000;
    private static final int MOST_WAIT = 1_000;

    /** A request above the bound: that of one query, which tells nothing of the planner. */
    public static final class TooLong
            extends IOException
    {
        private static final long serialVersionUID = 1;

        TooLong(String message)
        {
            super(message);
        }
    }

    private final InetSocketAddress address;
    private final int timeoutMillis;
    private final ThreadFactory threads;
    private final AtomicInteger sequence = new AtomicInteger();

    /** @param timeoutMillis limits the whole call, from the resolution of the name to the last byte of the reply */
    public PlannerClient(InetSocketAddress address, int timeoutMillis)
    {
        this(address, timeoutMillis, PlannerClient::daemon);
    }

    PlannerClient(InetSocketAddress address, int timeoutMillis, ThreadFactory threads)
    {
        this.address = address;
        this.timeoutMillis = timeoutMillis;
        this.threads = threads;
    }

    /**
     * @throws IOException no reply in time
     * @throws BridgeFailure an error reported by the planner
     * @throws ProtocolException the reply is not from a planner of this version
     */
    public SkippableFiles listSkippableFiles(FileRequest request)
            throws IOException, BridgeFailure
    {
        return call(
                "list_skippable_files",
                writer -> {
                    writer.field(WireType.STRUCT, 1);
                    request.write(writer, 0);
                },
                SkippableFiles::read);
    }

    /**
     * @param tables {@code schema.table} each; a table that the planner does not decide soon is left out of the answer
     * @throws IOException no reply in time
     * @throws BridgeFailure an error reported by the planner
     * @throws ProtocolException the reply is not from a planner of this version
     */
    public IndexedTables listIndexedTables(List<String> tables)
            throws IOException, BridgeFailure
    {
        return call(
                "list_indexed_tables",
                writer -> {
                    writer.stringListField(1, tables);
                    writer.i32Field(2, PROTOCOL);
                },
                IndexedTables::read);
    }

    /**
     * The columns of a table's version, and its name for {@link FileRequest#of}.
     *
     * @throws IOException no reply in time
     * @throws BridgeFailure an error reported by the planner
     * @throws ProtocolException the reply is not from a planner of this version
     */
    public TableVersion describe(FileRequest request)
            throws IOException, BridgeFailure
    {
        return call(
                "get_table",
                writer -> {
                    writer.stringField(1, request.schema());
                    writer.stringField(2, request.table());
                    writer.stringField(3, "hive");
                    writer.stringField(4, request.queryId());
                    writer.stringField(5, request.readVersion());
                    writer.i32Field(6, PROTOCOL);
                },
                TableVersion::read);
    }

    /**
     * Opens a plan: which files to read, and how.
     *
     * @throws IOException no reply in time
     * @throws BridgeFailure an error reported by the planner
     * @throws ProtocolException the reply is not from a planner of this version
     */
    public FilePlan plan(FileRequest request)
            throws IOException, BridgeFailure
    {
        return call(
                "plan",
                writer -> {
                    writer.field(WireType.STRUCT, 1);
                    request.write(writer, MOST_SPLITS);
                },
                FilePlan::read);
    }

    /**
     * More splits of a plan, from the process that made it.
     *
     * @throws IOException no reply in time
     * @throws BridgeFailure an error reported by the planner
     * @throws ProtocolException the reply is not from a planner of this version
     */
    public FileBatch nextSplits(String handle, long token)
            throws IOException, BridgeFailure
    {
        return call(
                "next_splits",
                writer -> {
                    writer.stringField(1, handle);
                    writer.i64Field(2, token);
                    writer.i32Field(3, MOST_SPLITS);
                    writer.i32Field(4, Math.min(timeoutMillis / 2, MOST_WAIT));
                },
                FileBatch::read);
    }

    /**
     * Ends a plan before its time.
     *
     * @throws IOException no reply in time
     * @throws BridgeFailure an error reported by the planner
     */
    public void close(String handle)
            throws IOException, BridgeFailure
    {
        call("close_plan", writer -> writer.stringField(1, handle), null);
    }

    /** Refuses an answer of another protocol. */
    static void requireProtocol(int protocol)
    {
        if (protocol != PROTOCOL) {
            throw new ProtocolException("the planner speaks protocol " + protocol + ", these hooks speak " + PROTOCOL);
        }
    }

    /** @param answer reads what the method returns; null if it returns nothing */
    private <T> T call(String method, Consumer<BinaryWriter> arguments, Function<BinaryReader, T> answer)
            throws IOException, BridgeFailure
    {
        int number = sequence.incrementAndGet();
        BinaryWriter writer = new BinaryWriter();
        writer.message(method, number);
        arguments.accept(writer);
        writer.stop();
        BinaryReader reader = new BinaryReader(ByteBuffer.wrap(exchange(writer.frame())), MOST_ELEMENTS);
        try {
            return Reply.read(reader, method, number, answer == null ? WireType.STOP : WireType.STRUCT, answer);
        }
        catch (BridgeFailure e) {
            if (e.code().equals("PROTOCOL_MISMATCH")) {
                throw new ProtocolException(e.getMessage());
            }
            throw e;
        }
    }

    /**
     * The time-out covers all of it: a name that is not resolved, and a planner that does not read, hold a thread of ours, and no query.
     */
    private byte[] exchange(byte[] frame)
            throws IOException
    {
        if (frame.length > MAX_REQUEST) {
            throw new TooLong("a request of " + frame.length + " bytes, at most " + MAX_REQUEST + " are sent");
        }
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
        Socket socket = new Socket();
        FutureTask<byte[]> call = new FutureTask<>(() -> {
            try {
                return exchange(socket, frame, deadline);
            }
            finally {
                CALLS.release();
            }
        });
        if (!CALLS.tryAcquire()) {
            throw new IOException("calls of " + MOST_CALLS + " queries have no answer yet");
        }
        boolean started = false;
        try {
            threads.newThread(call).start();
            started = true;
            return call.get(timeoutMillis, TimeUnit.MILLISECONDS);
        }
        catch (OutOfMemoryError e) {
            // of the start: those of the call itself are causes of its failure
            throw new IOException("no thread is to be had for the call", e);
        }
        catch (TimeoutException e) {
            throw new SocketTimeoutException("no whole answer in time");
        }
        catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("the query was interrupted");
        }
        catch (ExecutionException e) {
            if (e.getCause() instanceof IOException) {
                throw (IOException) e.getCause();
            }
            if (e.getCause() instanceof ProtocolException) {
                throw (ProtocolException) e.getCause();
            }
            throw new IOException(e.getCause());
        }
        finally {
            if (!started) {
                CALLS.release();
            }
            socket.close();
        }
    }

    private static Thread daemon(Runnable call)
    {
        Thread thread = new Thread(call, "skipbridge-call");
        thread.setDaemon(true);
        thread.setContextClassLoader(PlannerClient.class.getClassLoader());
        return thread;
    }

    private byte[] exchange(Socket socket, byte[] frame, long deadline)
            throws IOException
    {
        // Resolved at each call, because a planner may move to another host.
        InetSocketAddress resolved = new InetSocketAddress(address.getHostString(), address.getPort());
        socket.setTcpNoDelay(true);
        socket.connect(resolved, left(deadline));
        socket.setSoTimeout(left(deadline));
        socket.getOutputStream().write(frame);
        DataInputStream input = new DataInputStream(socket.getInputStream());
        int length = input.readInt();
        if (length < 0 || length > MAX_ANSWER) {
            throw new ProtocolException("an answer of " + length + " bytes, at most " + MAX_ANSWER + " are taken");
        }
        byte[] answer = new byte[length];
        for (int at = 0; at < length; ) {
            socket.setSoTimeout(left(deadline));
            int count = input.read(answer, at, length - at);
            if (count < 0) {
                throw new IOException("the connection closed " + at + " bytes into an answer of " + length);
            }
            at += count;
        }
        return answer;
    }

    private static int left(long deadline)
            throws SocketTimeoutException
    {
        long millis = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        if (millis <= 0) {
            throw new SocketTimeoutException("no whole answer in time");
        }
        return (int) millis;
    }
}
