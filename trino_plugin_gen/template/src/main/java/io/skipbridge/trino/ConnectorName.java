package io.skipbridge.trino;

/** The value of {@code connector.name}. The generator renames it only here. */
final class ConnectorName
{
    static final String NAME = "skipbridge";

    private ConnectorName() {}
}
