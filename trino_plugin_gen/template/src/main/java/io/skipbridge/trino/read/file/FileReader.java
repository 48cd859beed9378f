package io.skipbridge.trino.read.file;

import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.io.Closeable;
import java.io.IOException;
import java.util.Optional;
import java.util.function.UnaryOperator;

/** Reads the rows of one open file, or of its byte range. */
public interface FileReader
        extends Closeable
{
    /** The channel of {@link #next}'s pages that holds a column of {@link FileScan#dataColumns}; -1 if the file does not have it, so that it is NULL. */
    default int channelOf(int dataColumn)
    {
        return dataColumn;
    }

    /** How a column's values in {@link #next}'s pages become those of the table; empty if they are. */
    default Optional<UnaryOperator<Block>> conversionOf(int dataColumn)
    {
        return Optional.empty();
    }

    /** The next rows, which may be read until the next call; null at the end. */
    SourcePage next()
            throws IOException;

    /** What the reader holds in memory, without the bytes that were read ahead. */
    default long memoryBytes()
    {
        return 0;
    }

    @Override
    default void close()
            throws IOException {}
}
