package io.skipbridge.trino;

/** The name in {@code connector.name}; the generator renames it here and nowhere else. */
final class ConnectorName
{
    static final String NAME = "skipbridge";

    private ConnectorName() {}
}
