package io.skipbridge.trino.read.file;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.predicate.TupleDomain;

import java.io.IOException;

/** A format whose files are read one by one. {@link FilesPageSource} does what does not depend on the format. */
public interface RowFormat
{
    /** The format as errors name it, such as ORC. */
    String spelled();

    /** The bytes of a file that are read before it is opened. */
    AheadRange ahead();

    /**
     * Opens a file at the split's byte range. What it opens besides is the reader's to close; the file itself is closed after the reader.
     *
     * @param predicate what may be used to skip rows. It need not be used
     */
    FileReader open(FileScan scan, OpenFile file, TupleDomain<BridgeColumnHandle> predicate)
            throws IOException;

    /** Whether the reader says by this that the bytes are not of the format. Else an IOException is an error of the storage. */
    default boolean damaged(IOException problem)
    {
        return false;
    }
}
