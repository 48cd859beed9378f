package io.skipbridge.trino;

import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.trino.wire.PlannerAddress;
import io.skipbridge.trino.wire.PlannerClient;
import io.trino.spi.TrinoException;

import java.io.Closeable;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The planner processes of a catalog: several addresses, or several processes behind one. One process is chosen per query, which then sees one state
 * of each table; the calls of a plan go to the process that opened it.
 */
public final class Planners
        implements Closeable
{
    /** One call, which may be retried on another process. */
    public interface Call<T>
    {
        T on(PlannerClient client)
                throws IOException, BridgeFailure;
    }

    private static final Duration PATIENCE = Duration.ofSeconds(5);
    private static final long FIRST_PAUSE = 100;
    private static final long LONGEST_PAUSE = 1000;

    private final List<PlannerAddress> addresses;
    private final Duration timeout;
    private final Duration patience;
    private final Map<PlannerAddress, PlannerClient> clients = new ConcurrentHashMap<>();

    public Planners(List<PlannerAddress> addresses, Duration timeout)
    {
        this(addresses, timeout, PATIENCE);
    }

    Planners(List<PlannerAddress> addresses, Duration timeout, Duration patience)
    {
        this.addresses = List.copyOf(addresses);
        this.timeout = timeout;
        this.patience = patience;
    }

    public PlannerClient client(PlannerAddress address)
    {
        return clients.computeIfAbsent(address, key -> new PlannerClient(key, timeout));
    }

    /** The process that opened a plan: the endpoint in its reply, or else the process that was called. */
    public PlannerClient endpoint(String endpoint, PlannerClient asked)
    {
        try {
            return endpoint.isEmpty() ? asked : client(PlannerAddress.parse(endpoint));
        }
        catch (IllegalArgumentException e) {
            return asked;
        }
    }

    /** Calls the query's process, then the others in turn if it does not reply. */
    public <T> T call(String queryId, Call<T> call)
    {
        return call(queryId, Optional.empty(), call);
    }

    /**
     * Calls the process that replied to the query before, if any, then the others in turn. Planners that cannot be reached are tried again for some
     * seconds: one that restarts is soon back.
     */
    public <T> T call(String queryId, Optional<String> endpoint, Call<T> call)
    {
        long start = System.nanoTime();
        for (long pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
            try {
                return callOnce(queryId, endpoint, call);
            }
            catch (PlannersAway e) {
                if (System.nanoTime() - start > patience.toNanos() || !paused(pause)) {
                    throw unreachable(addresses, e.reason);
                }
            }
        }
    }

    private static boolean paused(long millis)
    {
        try {
            Thread.sleep(millis);
            return true;
        }
        catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private <T> T callOnce(String queryId, Optional<String> endpoint, Call<T> call)
            throws PlannersAway
    {
        int first = Math.floorMod(queryId.hashCode(), addresses.size());
        List<PlannerClient> clients = new ArrayList<>();
        for (int i = 0; i < addresses.size(); i++) {
            clients.add(client(addresses.get((first + i) % addresses.size())));
        }
        endpoint.ifPresent(known -> clients.addFirst(endpoint(known, clients.getFirst())));
        Exception problem = null;
        boolean away = true;
        for (PlannerClient client : clients) {
            try {
                PlannerClient process = process(client, queryId);
                if (process != client) {
                    try {
                        return call.on(process);
                    }
                    catch (IOException e) {
                        client.forgetProcesses();
                        PlannerClient restarted = process(client, queryId);
                        if (restarted == process) {
                            throw e;
                        }
                        process = restarted;
                    }
                }
                return call.on(process);
            }
            catch (BridgeFailure e) {
                throw failure(e);
            }
            catch (IOException | ProtocolException e) {
                problem = e;
                // A planner that is late is at work, and one of another protocol stays what it is.
                away &= e instanceof IOException && !(e instanceof SocketTimeoutException);
            }
        }
        if (away && !Thread.currentThread().isInterrupted()) {
            throw new PlannersAway(problem);
        }
        throw unreachable(addresses, problem);
    }

    private static final class PlannersAway
            extends Exception
    {
        private final Exception reason;

        PlannersAway(Exception reason)
        {
            super(reason);
            this.reason = reason;
        }
    }

    /** The query's process among those behind an address. */
    private PlannerClient process(PlannerClient asked, String queryId)
            throws IOException, BridgeFailure
    {
        List<String> processes = asked.processes();
        // A process that is asked directly tells of all processes, itself among them.
        if (processes.size() < 2 || processes.contains(asked.address().toString())) {
            return asked;
        }
        int chosen = Math.floorMod(Math.floorDiv(queryId.hashCode(), addresses.size()), processes.size());
        return client(PlannerAddress.parse(processes.get(chosen)));
    }

    public static TrinoException failure(BridgeFailure failure)
    {
        String remedy = failure.remedy().isEmpty() ? "" : " (" + failure.remedy() + ")";
        return new TrinoException(BridgeErrorCode.of(failure), failure.getMessage() + remedy, failure);
    }

    public static TrinoException unreachable(List<PlannerAddress> addresses, Exception problem)
    {
        String where = String.join(", ", addresses.stream().map(PlannerAddress::toString).toList());
        String reason = problem.getMessage() == null ? problem.getClass().getSimpleName() : problem.getMessage();
        if (problem instanceof ProtocolException mismatch) {
            return new TrinoException(
                    BridgeErrorCode.PLANNER_PROTOCOL,
                    "What answers at %s does not speak this connector's protocol: %s. %s".formatted(where, reason, mismatch.remedy()),
                    problem);
        }
        if (problem instanceof SocketTimeoutException) {
            return new TrinoException(
                    BridgeErrorCode.PLANNER_UNAVAILABLE,
                    ("No answer from the planner at %s in time: %s. It may wait for the metastore or the store of the table:"
                            + " look at its log, or run: skipbridge doctor SCHEMA.TABLE. Properties of the catalog: %s, %s")
                            .formatted(where, reason, BridgeConfig.PLANNER, BridgeConfig.PLANNER_TIMEOUT),
                    problem);
        }
        return new TrinoException(
                BridgeErrorCode.PLANNER_UNAVAILABLE,
                "No planner answers at %s: %s. Start it with: skipbridge serve. Its address is the catalog property %s".formatted(
                        where, reason, BridgeConfig.PLANNER),
                problem);
    }

    @Override
    public void close()
    {
        clients.values().forEach(PlannerClient::close);
    }
}
