package io.skipbridge.trino.split;

/** A log that a reader merges into a file's rows; {@code modifiedMillis} is -1 when unknown. */
public record LogFile(String path, long size, long modifiedMillis) {}
