package io.skipbridge.trino.split;

import io.trino.spi.connector.ConnectorSplit;

import java.util.Optional;
import java.util.function.Supplier;

/** A split that tells the engine where it should run, where that differs between families of releases. */
abstract class PlacedSplit
        implements ConnectorSplit
{
    private final Optional<String> key;

    PlacedSplit(SplitPlacement placement, Supplier<String> key)
    {
        this.key = placement == SplitPlacement.ANYWHERE ? Optional.empty() : Optional.of(key.get());
    }

    @Override
    public Optional<String> getAffinityKey()
    {
        return key;
    }
}
