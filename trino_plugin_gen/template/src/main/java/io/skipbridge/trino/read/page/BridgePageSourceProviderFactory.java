package io.skipbridge.trino.read.page;

import io.skipbridge.trino.read.storage.FileOpener;
import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorPageSourceProviderFactory;

/** Creates a provider per scan operator, so that its splits share a schema cache. */
public class BridgePageSourceProviderFactory
        implements ConnectorPageSourceProviderFactory
{
    private final FileOpener files;

    public BridgePageSourceProviderFactory(FileOpener files)
    {
        this.files = files;
    }

    @Override
    public ConnectorPageSourceProvider createPageSourceProvider()
    {
        return new BridgePageSourceProvider(files);
    }
}
