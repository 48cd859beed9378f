package io.skipbridge.trino.metadata;

import io.trino.spi.connector.SchemaTableName;

import static java.util.Objects.requireNonNull;

/** A table as of one version, as in {@code PlanRequest}. An empty version is the newest. */
record TableVersion(SchemaTableName name, String readVersion)
{
    private static final String MAX_AGE = ";max_age=";
    private static final String FRESH = ";fresh";

    TableVersion
    {
        requireNonNull(name, "name is null");
        requireNonNull(readVersion, "readVersion is null");
    }

    /** The same version, of which the planner uses nothing that it learnt more than so many milliseconds ago. */
    TableVersion withMaxAge(long millis)
    {
        return new TableVersion(name, readVersion + MAX_AGE + millis);
    }

    /** The same version, of which the planner uses nothing that it knew before. */
    TableVersion fresh()
    {
        return readVersion.endsWith(FRESH) ? this : new TableVersion(name, readVersion + FRESH);
    }

    @Override
    public String toString()
    {
        String version = readVersion.split(MAX_AGE + "|" + FRESH, 2)[0];
        return version.isEmpty() ? name.toString() : name + " at " + version;
    }
}
