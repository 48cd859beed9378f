package io.skipbridge.trino.read.merge;

import io.trino.spi.Page;

import java.io.Closeable;
import java.io.IOException;

/** Rows in pages. */
public interface RowPages
        extends Closeable
{
    /** The next page, or null after the last one. */
    Page next()
            throws IOException;
}
