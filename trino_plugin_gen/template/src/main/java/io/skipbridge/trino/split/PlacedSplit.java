package io.skipbridge.trino.split;

import io.trino.spi.HostAddress;
import io.trino.spi.connector.ConnectorSplit;

import java.util.List;
import java.util.function.Supplier;

/** A split that tells the engine where it should run, where that differs between families of releases. */
abstract class PlacedSplit
        implements ConnectorSplit
{
    private final List<HostAddress> addresses;

    PlacedSplit(SplitPlacement placement, Supplier<String> key)
    {
        this.addresses = placement == SplitPlacement.ANYWHERE ? List.of() : List.copyOf(placement.hosts(key.get()));
    }

    @Override
    public List<HostAddress> getAddresses()
    {
        return addresses;
    }
}
