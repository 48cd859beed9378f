package io.skipbridge.trino.split;

import io.airlift.log.Logger;
import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;

import java.io.Closeable;
import java.io.IOException;
import java.time.Duration;

/**
 * Keeps a plan open while the engine takes no splits, by asking the planner about it now and then. A planner closes a plan that nobody asks about,
 * and a scan of many files may be busy for long with those that it has been given.
 */
final class PlanKeeper
        implements Closeable
{
    /** Far below the ten minutes after which the planner closes an idle plan. */
    static final Duration INTERVAL = Duration.ofSeconds(20);

    private static final Logger log = Logger.get(PlanKeeper.class);

    /** A call about the plan that changes nothing. */
    @FunctionalInterface
    interface Call
    {
        void ask()
                throws IOException, BridgeFailure;
    }

    private final Thread thread;

    private PlanKeeper(Duration interval, Call call)
    {
        this.thread = Thread.ofVirtual().name("skipbridge-keep-plan").start(() -> keep(interval, call));
    }

    static PlanKeeper start(Duration interval, Call call)
    {
        return new PlanKeeper(interval, call);
    }

    private static void keep(Duration interval, Call call)
    {
        while (true) {
            try {
                Thread.sleep(interval);
                call.ask();
            }
            catch (InterruptedException e) {
                return;
            }
            catch (IOException | BridgeFailure | ProtocolException e) {
                // the loader meets it at its next call
                log.debug(e, "a plan was not kept");
            }
            if (Thread.currentThread().isInterrupted()) {
                return;
            }
        }
    }

    @Override
    public void close()
    {
        thread.interrupt();
    }
}
