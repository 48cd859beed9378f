package io.skipbridge.trino.split;

import io.airlift.log.Logger;
import io.trino.spi.HostAddress;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** Tells which workers a split should run on. The engine takes others if these are busy. */
@FunctionalInterface
public interface SplitPlacement
{
    SplitPlacement ANYWHERE = _ -> List.of();

    /** The workers for a key, the same ones for the same key as long as no worker joins or leaves; empty: any, or the engine itself chooses by the key. */
    List<HostAddress> hosts(String key);

    /**
     * As {@code placement} says until it fails once; then anywhere, which is right, too. It is not asked again: each of a query's splits would wait for
     * the same failure.
     */
    static SplitPlacement untilFailure(SplitPlacement placement)
    {
        AtomicBoolean failed = new AtomicBoolean();
        return key -> {
            if (failed.get()) {
                return List.of();
            }
            try {
                return placement.hosts(key);
            }
            catch (RuntimeException e) {
                // an interrupted thread tells nothing about the placement
                failed.set(!Thread.currentThread().isInterrupted());
                Logger.get(SplitPlacement.class).warn("Splits of this catalog prefer no worker, whatever the workers' caches keep: %s", e.getMessage());
                return List.of();
            }
        };
    }
}
