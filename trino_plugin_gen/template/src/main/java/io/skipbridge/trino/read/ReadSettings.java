package io.skipbridge.trino.read;

/**
 * What the catalog says of how files are read.
 *
 * @param orcByName whether columns of ORC are found by their names; else by their places, as in Trino's hive connector
 * @param orcTimeZone of timestamps in files of ORC that do not name their writer's zone
 */
public record ReadSettings(boolean orcByName, String orcTimeZone) {}
