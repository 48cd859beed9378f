package io.skipbridge.trino.read.merge;

import java.io.IOException;
import java.util.List;
import java.util.Optional;

/** The files of a slice, as the plugin reads them. No predicate applies to them. */
public interface SliceFiles
{
    /** Logs are asked for in pieces of this many bytes; small ones are one piece. */
    int LOG_PIECE = 8 << 20;

    /** Reads a range of the log with this ordinal in the request, within the planned size. A log that is shorter is never an end of file, but an error. */
    void readLog(int log, long position, byte[] buffer, int offset, int length);

    /** All rows of the base file. A column that it lacks is NULL. */
    RowPages readBase(List<SliceRequest.Column> columns)
            throws IOException;

    /** All rows of a Parquet file that is a range of a log. */
    RowPages readInlineParquet(int log, long position, int length, List<SliceRequest.Column> columns)
            throws IOException;

    /**
     * How the blocks that an instant wrote have the table's columns; empty if all blocks of the slice have them by name.
     *
     * @throws UnsupportedSlice if it is not known
     */
    Optional<LogColumns> logColumns(String instant);
}
