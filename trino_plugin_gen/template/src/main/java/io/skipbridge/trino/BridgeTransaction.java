package io.skipbridge.trino;

import io.trino.spi.connector.ConnectorTransactionHandle;

import java.util.UUID;

/** A read-only transaction. Metadata is cached for its duration. */
public record BridgeTransaction(UUID id)
        implements ConnectorTransactionHandle
{}
