package io.skipbridge.trino.read.orc;

import io.trino.orc.DiskRange;

/** A range of Trino's ORC reader, which differs between families of releases. */
final class NativeRange
{
    private NativeRange() {}

    static long offset(DiskRange range)
    {
        return range.getOffset();
    }

    static int length(DiskRange range)
    {
        return range.getLength();
    }
}
