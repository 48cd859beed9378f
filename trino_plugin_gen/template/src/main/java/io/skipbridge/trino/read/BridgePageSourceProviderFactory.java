package io.skipbridge.trino.read;

import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorPageSourceProviderFactory;

/** One provider per scan operator, so that its splits share what they learn of the files' schemas. */
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
