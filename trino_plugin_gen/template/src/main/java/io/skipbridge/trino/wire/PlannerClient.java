package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.BinaryWriter;
import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.Reply;
import io.skipbridge.client.WireType;

import java.io.Closeable;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Calls one planner process. Threads may share a client: each call has a connection of its own, and idle connections are kept.
 *
 * <p>A call that fails on an idle connection is retried once on a new one, because the planner may have restarted. Every method of the service
 * may be retried. An {@link IOException} means that no planner replied; a {@link BridgeFailure} is the planner's reply.
 */
public final class PlannerClient
        implements Closeable
{
    private static final int MAX_IDLE = 128;

    private final PlannerAddress address;
    private final Duration timeout;
    private final ConcurrentLinkedDeque<Connection> idle = new ConcurrentLinkedDeque<>();
    private volatile List<String> processes = List.of();

    public PlannerClient(PlannerAddress address, Duration timeout)
    {
        this.address = address;
        this.timeout = timeout;
    }

    public PlannerAddress address()
    {
        return address;
    }

    /** The addresses of the planner processes behind this one, as it told when it was connected to last. */
    public List<String> processes()
            throws IOException, BridgeFailure
    {
        List<String> known = processes;
        while (known.isEmpty()) {
            keep(connect());
            known = processes;
        }
        return known;
    }

    /** Makes {@link #processes} ask again: one of them did not reply, so they may have been restarted. */
    public void forgetProcesses()
    {
        processes = List.of();
    }

    public List<String> listSchemas()
            throws IOException, BridgeFailure
    {
        return call("list_schemas", writer -> writer.i32Field(1, Health.PROTOCOL), WireType.LIST, BinaryReader::strings);
    }

    public List<String> listTables(String schemaName)
            throws IOException, BridgeFailure
    {
        return names("list_tables", schemaName);
    }

    /** The views among the tables. */
    public List<String> listViews(String schemaName)
            throws IOException, BridgeFailure
    {
        return names("list_views", schemaName);
    }

    private List<String> names(String method, String schemaName)
            throws IOException, BridgeFailure
    {
        return call(method, writer -> {
            writer.stringField(1, schemaName);
            writer.i32Field(2, Health.PROTOCOL);
        }, WireType.LIST, BinaryReader::strings);
    }

    /** Describes a table. The planner starts to list its files for the scans of the query. */
    public TableDescription getTable(String queryId, String schemaName, String tableName, String readVersion)
            throws IOException, BridgeFailure
    {
        return call("get_table", writer -> {
            writer.stringField(1, schemaName);
            writer.stringField(2, tableName);
            writer.stringField(3, "trino");
            writer.stringField(4, queryId);
            writer.stringField(5, readVersion);
            writer.i32Field(6, Health.PROTOCOL);
        }, WireType.STRUCT, TableDescription::read);
    }

    public Plan plan(PlanRequest request)
            throws IOException, BridgeFailure
    {
        return call("plan", writer -> {
            writer.field(WireType.STRUCT, 1);
            request.write(writer);
        }, WireType.STRUCT, Plan::read);
    }

    public void applyDynamicFilter(String handle, String predicate)
            throws IOException, BridgeFailure
    {
        call("apply_dynamic_filter", writer -> {
            writer.stringField(1, handle);
            writer.stringField(2, predicate);
        }, WireType.STOP, reader -> null);
    }

    public SplitBatch nextSplits(String handle, long token, int maxSplits, int maxWaitMillis)
            throws IOException, BridgeFailure
    {
        return call("next_splits", writer -> {
            writer.stringField(1, handle);
            writer.i64Field(2, token);
            writer.i32Field(3, maxSplits);
            writer.i32Field(4, maxWaitMillis);
        }, WireType.STRUCT, SplitBatch::read);
    }

    public AggregateResult aggregate(PlanRequest request, AggregateRequest aggregates)
            throws IOException, BridgeFailure
    {
        return call("aggregate", writer -> {
            writer.field(WireType.STRUCT, 1);
            request.write(writer);
            writer.field(WireType.STRUCT, 2);
            aggregates.write(writer);
        }, WireType.STRUCT, AggregateResult::read);
    }

    /** The table with estimates for the rows that match the request's predicate. */
    public TableDescription getStatistics(PlanRequest request)
            throws IOException, BridgeFailure
    {
        return call("get_statistics", writer -> {
            writer.field(WireType.STRUCT, 1);
            request.write(writer);
        }, WireType.STRUCT, TableDescription::read);
    }

    public Plan openSystemTable(PlanRequest request, String kind)
            throws IOException, BridgeFailure
    {
        return call("open_system_table", writer -> {
            writer.field(WireType.STRUCT, 1);
            request.write(writer);
            writer.stringField(2, kind);
        }, WireType.STRUCT, Plan::read);
    }

    public SystemPage nextRows(String handle, long token, int maxRows)
            throws IOException, BridgeFailure
    {
        return call("next_rows", writer -> {
            writer.stringField(1, handle);
            writer.i64Field(2, token);
            writer.i32Field(3, maxRows);
        }, WireType.STRUCT, SystemPage::read);
    }

    /** Tells the planner that partitions were written, whose entries it then brings up to date; none: any of the table. */
    public void refreshIndex(String schemaName, String tableName, List<String> partitions)
            throws IOException, BridgeFailure
    {
        call("refresh_index", writer -> {
            writer.stringField(1, schemaName);
            writer.stringField(2, tableName);
            writer.stringListField(3, partitions);
            writer.i32Field(4, Health.PROTOCOL);
        }, WireType.STOP, reader -> null);
    }

    public void closePlan(String handle)
            throws IOException, BridgeFailure
    {
        call("close_plan", writer -> writer.stringField(1, handle), WireType.STOP, reader -> null);
    }

    private <T> T call(String method, Consumer<BinaryWriter> arguments, byte resultType, Function<BinaryReader, T> result)
            throws IOException, BridgeFailure
    {
        Connection kept = idle.pollFirst();
        if (kept != null) {
            try {
                return call(kept, method, arguments, resultType, result);
            }
            catch (SocketTimeoutException e) {
                throw e;
            }
            catch (IOException e) {
                // an interrupt broke this connection alone
                if (Thread.currentThread().isInterrupted()) {
                    throw e;
                }
                drop();
            }
        }
        return call(connect(), method, arguments, resultType, result);
    }

    /** A new connection. A planner with another protocol is refused before any other request, because it might misread it. */
    private Connection connect()
            throws IOException, BridgeFailure
    {
        Connection connection = new Connection(new InetSocketAddress(address.host(), address.port()), timeout);
        boolean checked = false;
        try {
            Health health = exchange(connection, "health", writer -> {}, WireType.STRUCT, Health::read);
            health.check();
            processes = health.processes().isEmpty() ? List.of(address.toString()) : health.processes();
            checked = true;
            return connection;
        }
        finally {
            if (!checked) {
                connection.close();
            }
        }
    }

    private <T> T call(Connection connection, String method, Consumer<BinaryWriter> arguments, byte resultType, Function<BinaryReader, T> result)
            throws IOException, BridgeFailure
    {
        boolean inStep = false;
        try {
            T answer = exchange(connection, method, arguments, resultType, result);
            inStep = true;
            return answer;
        }
        catch (BridgeFailure e) {
            inStep = true;
            throw e;
        }
        finally {
            if (inStep) {
                keep(connection);
            }
            else {
                connection.close();
            }
        }
    }

    private void keep(Connection connection)
    {
        if (idle.size() < MAX_IDLE) {
            idle.addFirst(connection);
        }
        else {
            connection.close();
        }
    }

    private static <T> T exchange(Connection connection, String method, Consumer<BinaryWriter> arguments, byte resultType, Function<BinaryReader, T> result)
            throws IOException, BridgeFailure
    {
        BinaryWriter writer = new BinaryWriter();
        int sequence = connection.nextSequence();
        writer.message(method, sequence);
        arguments.accept(writer);
        writer.stop();
        return Reply.read(new BinaryReader(connection.call(writer.frame())), method, sequence, resultType, result);
    }

    private void drop()
    {
        for (Connection connection = idle.poll(); connection != null; connection = idle.poll()) {
            connection.close();
        }
    }

    @Override
    public void close()
    {
        drop();
    }
}
