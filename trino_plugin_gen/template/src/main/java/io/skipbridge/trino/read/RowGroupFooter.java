package io.skipbridge.trino.read;

/** A row group of a footer: its rows, where its first column starts, and the chunks a read needs, by their place in {@link ReadSchema#leaves}. */
record RowGroupFooter(long rows, long startingPosition, ChunkFooter[] chunks) {}
