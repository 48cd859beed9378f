package io.skipbridge.trino.split;

import io.trino.spi.HostAddress;

import java.util.List;

/** Tells which workers a split should run on. The engine takes others if these are busy. */
@FunctionalInterface
public interface SplitPlacement
{
    SplitPlacement ANYWHERE = _ -> List.of();

    /** The workers for a key, the same ones for the same key as long as no worker joins or leaves; empty: any, or the engine itself chooses by the key. */
    List<HostAddress> hosts(String key);
}
