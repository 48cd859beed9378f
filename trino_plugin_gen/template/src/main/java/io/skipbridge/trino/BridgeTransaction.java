package io.skipbridge.trino;

import io.trino.spi.connector.ConnectorTransactionHandle;

import java.util.UUID;

/** Reads only; a transaction is the scope of the metadata's memory. */
public record BridgeTransaction(UUID id)
        implements ConnectorTransactionHandle
{}
