package io.skipbridge.trino.read;

import io.trino.spi.type.TypeManager;

/**
 * How the catalog reads files.
 *
 * @param orcByName whether columns of ORC are found by their names; else by their places, as in Trino's hive connector
 * @param orcTimeZone of timestamps in files of ORC that do not name their writer's zone
 * @param types Trino's
 */
public record ReadSettings(boolean orcByName, String orcTimeZone, TypeManager types) {}
