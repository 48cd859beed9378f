package io.skipbridge.trino.read.file;

import io.skipbridge.trino.split.PlannedFile;

import java.util.function.Function;

/**
 * A planned file whose rows are about to be read.
 *
 * @param bytes all of the file, not only the planned range. Reads are counted, and each one makes sure that the file is the planned one
 * @param failure makes of an exception outside of {@link FileReader#next}, such as of a column read on demand, an error that names the file
 */
public record OpenFile(PlannedFile planned, PlannedBytes bytes, ReadCounters counters, Function<Throwable, RuntimeException> failure) {}
