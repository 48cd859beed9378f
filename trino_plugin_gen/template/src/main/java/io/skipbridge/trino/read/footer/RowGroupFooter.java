package io.skipbridge.trino.read.footer;

/** A row group of a footer: its number of rows, the start of its first column, and the chunks to read, in the order of {@link ReadSchema#leaves}. */
public record RowGroupFooter(long rows, long startingPosition, ChunkFooter[] chunks) {}
