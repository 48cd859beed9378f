package io.skipbridge.trino.split;

import io.airlift.log.Logger;
import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.Planners;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.predicate.PredicateWriter;
import io.skipbridge.trino.predicate.RowFilterReader;
import io.skipbridge.trino.wire.Plan;
import io.skipbridge.trino.wire.PlannerClient;
import io.skipbridge.trino.wire.SplitBatch;
import io.trino.spi.TrinoException;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.type.TypeManager;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Loads all batches of one plan into a {@link SplitQueue}, on a thread of its own.
 *
 * <p>Each split arrives exactly once. The loader requests a batch by its token, and the planner repeats a batch until the next token is
 * requested. So after a broken connection the loader requests the same batch again. It reopens a lost plan only if the queue has received
 * nothing of it.
 */
final class SplitLoader
        implements Runnable
{
    private static final Logger log = Logger.get(SplitLoader.class);
    static final int BATCH_SPLITS = 1_000;
    private static final int BATCH_WAIT_MILLIS = 1_000;
    private static final int ATTEMPTS = 5;
    private static final int RETRY_MILLIS = 200;
    /** Values of a filter that can hardly skip a file; more become a range. */
    private static final int FEW_VALUES = 100;

    private final Planners planners;
    private final TypeManager types;
    private final ScanRequest request;
    private final DynamicFilterTracker dynamicFilter;
    private final SplitQueue queue;
    private final Duration keepInterval;

    private PlannerClient client;
    private Plan plan;
    private Optional<PlanKeeper> keeper = Optional.empty();
    private TupleDomain<BridgeColumnHandle> rowFilter = TupleDomain.all();
    private boolean delivered;
    private TupleDomain<BridgeColumnHandle> applied = TupleDomain.all();
    private Thread interruptible;
    private volatile Optional<String> report = Optional.empty();

    SplitLoader(Planners planners, TypeManager types, ScanRequest request, DynamicFilterTracker dynamicFilter, SplitQueue queue)
    {
        this(planners, types, request, dynamicFilter, queue, PlanKeeper.INTERVAL);
    }

    SplitLoader(Planners planners, TypeManager types, ScanRequest request, DynamicFilterTracker dynamicFilter, SplitQueue queue, Duration keepInterval)
    {
        this.planners = planners;
        this.types = types;
        this.request = request;
        this.dynamicFilter = dynamicFilter;
        this.queue = queue;
        this.keepInterval = keepInterval;
    }

    Optional<String> report()
    {
        return report;
    }

    /** Ends the loading and closes the plan. The call that opens the plan is let finish, else the planner would keep a plan that nobody closes. */
    void stop()
    {
        boolean loading = queue.close();
        synchronized (this) {
            if (loading && interruptible != null) {
                interruptible.interrupt();
            }
        }
    }

    private synchronized void mayInterrupt(boolean may)
    {
        interruptible = may ? Thread.currentThread() : null;
    }

    @Override
    public void run()
    {
        try {
            load();
            queue.end();
        }
        catch (BridgeFailure e) {
            queue.fail(Planners.failure(e));
        }
        catch (IOException | ProtocolException e) {
            queue.fail(Planners.unreachable(List.of(client.address()), e));
        }
        catch (Throwable e) {
            queue.fail(e);
        }
        finally {
            mayInterrupt(false);
            closePlan();
        }
    }

    private void load()
            throws IOException, BridgeFailure, InterruptedException
    {
        open();
        if (!queue.awaitRoom()) {
            return;
        }
        dynamicFilter.await(plan);
        boolean reopened = false;
        long token = 0;
        while (queue.awaitRoom()) {
            SplitBatch batch;
            try {
                if (token == 0 && plan.first().isPresent()) {
                    batch = plan.first().get();
                }
                else {
                    applyDynamicFilter();
                    batch = next(token);
                }
            }
            catch (BridgeFailure | IOException e) {
                boolean lost = e instanceof IOException || ((BridgeFailure) e).planLost();
                if (lost && !delivered && !reopened) {
                    reopened = true;
                    token = 0;
                    applied = TupleDomain.all();
                    open();
                    continue;
                }
                if (e instanceof BridgeFailure failure && failure.planLost()) {
                    throw lost(failure);
                }
                throw e;
            }
            SplitColumns columns = new SplitColumns(batch, rowFilter);
            SupportedSlices.check(columns);
            if (batch.finished()) {
                report = batch.report();
            }
            queue.add(columns, batch.finished());
            delivered |= batch.splitCount() > 0;
            if (batch.finished()) {
                return;
            }
            token = batch.nextToken();
        }
    }

    private void open()
    {
        mayInterrupt(false);
        keeper.ifPresent(PlanKeeper::close);
        planners.call(request.plan().queryId(), request.planner(), asked -> {
            plan = asked.plan(request.plan());
            client = planners.endpoint(plan.endpoint(), asked);
            if (!request.unenforcedConstraint().isEmpty()) {
                client.applyDynamicFilter(plan.handle(), request.unenforcedConstraint());
            }
            return plan;
        });
        keeper = keepOpen(client, plan.handle());
        mayInterrupt(true);
        rowFilter = RowFilterReader.read(plan.rowFilter(), request.partitionKeys(), types::fromSqlType);
        log.debug("query %s: plan %s at %s, generation %d, %s, dropped %s", request.plan().queryId(), plan.handle(), client.address(), plan.generation(), plan.freshness(), plan.dropped());
    }

    private Optional<PlanKeeper> keepOpen(PlannerClient planner, String handle)
    {
        if (handle.isEmpty()) {
            return Optional.empty();
        }
        return Optional.of(PlanKeeper.start(keepInterval, () -> planner.applyDynamicFilter(handle, "")));
    }

    /** Sends the dynamic filter when it has changed since it was last sent. */
    private void applyDynamicFilter()
            throws IOException, BridgeFailure
    {
        TupleDomain<BridgeColumnHandle> current = dynamicFilter.current();
        if (!current.isAll() && !current.equals(applied)) {
            Set<String> skipping = Set.copyOf(plan.dynamicFilterColumns());
            TupleDomain<BridgeColumnHandle> sent = current.transformDomains((column, domain) -> skipping.contains(column.name()) ? domain : domain.simplify(FEW_VALUES));
            client.applyDynamicFilter(plan.handle(), PredicateWriter.write(sent, List.of()));
            applied = current;
        }
    }

    private SplitBatch next(long token)
            throws IOException, BridgeFailure, InterruptedException
    {
        for (int attempt = 1; ; attempt++) {
            try {
                return client.nextSplits(plan.handle(), token, BATCH_SPLITS, BATCH_WAIT_MILLIS);
            }
            catch (IOException e) {
                if (attempt == ATTEMPTS) {
                    throw e;
                }
                Thread.sleep((long) RETRY_MILLIS * attempt);
            }
        }
    }

    private TrinoException lost(BridgeFailure failure)
    {
        return new TrinoException(
                BridgeErrorCode.PLAN_LOST,
                "The planner at %s lost this query's plan after files of it were given out (was it restarted?): %s. Run the query again".formatted(client.address(), failure.getMessage()),
                failure);
    }

    private void closePlan()
    {
        keeper.ifPresent(PlanKeeper::close);
        if (plan == null || plan.handle().isEmpty()) {
            return;
        }
        // an interrupted virtual thread may not use a socket
        Thread.interrupted();
        try {
            client.closePlan(plan.handle());
        }
        catch (IOException | BridgeFailure | ProtocolException e) {
            log.debug(e, "plan %s was not closed; it expires by itself", plan.handle());
        }
    }
}
