package io.skipbridge.trino.read;

import io.skipbridge.trino.read.storage.FileOpener;
import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorPageSourceProviderFactory;

/** Creates a provider per scan operator, so that its splits share a schema cache. */
public class BridgePageSourceProviderFactory
        implements ConnectorPageSourceProviderFactory
{
    private final FileOpener files;
    private final ReadSettings settings;

    public BridgePageSourceProviderFactory(FileOpener files, ReadSettings settings)
    {
        this.files = files;
        this.settings = settings;
    }

    @Override
    public ConnectorPageSourceProvider createPageSourceProvider()
    {
        return new BridgePageSourceProvider(files, settings);
    }
}
