package io.skipbridge.trino.read.merge;

/** A slice needs what the merger does not have. The message names it, and the remedy. */
public final class UnsupportedSlice
        extends RuntimeException
{
    public UnsupportedSlice(String message)
    {
        super(message);
    }

    public UnsupportedSlice(String message, Throwable cause)
    {
        super(message, cause);
    }
}
