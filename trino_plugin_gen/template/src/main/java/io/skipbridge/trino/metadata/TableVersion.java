package io.skipbridge.trino.metadata;

import io.trino.spi.connector.SchemaTableName;

import static java.util.Objects.requireNonNull;

/** A table as of one version, as in {@code PlanRequest}. An empty version is the newest. */
record TableVersion(SchemaTableName name, String readVersion)
{
    TableVersion
    {
        requireNonNull(name, "name is null");
        requireNonNull(readVersion, "readVersion is null");
    }

    @Override
    public String toString()
    {
        return readVersion.isEmpty() ? name.toString() : name + " at " + readVersion;
    }
}
