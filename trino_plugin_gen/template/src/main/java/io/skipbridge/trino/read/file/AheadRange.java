package io.skipbridge.trino.read.file;

import io.skipbridge.trino.split.PlannedFile;

/** Which bytes of a file are read ahead: all of a small file, and of a larger one those that its reader needs first. */
public interface AheadRange
{
    /** Files up to this size are read whole. */
    long SMALL_FILE = 4 << 20;

    long offset(PlannedFile file);

    int length(PlannedFile file);

    /** Whether the reader goes on from there, through the whole planned range. */
    boolean goesOn();

    /** The end of the file, for formats with a footer. */
    static AheadRange end(long wholeUpTo, int length)
    {
        return new AheadRange()
        {
            @Override
            public long offset(PlannedFile file)
            {
                return file.size() - length(file);
            }

            @Override
            public int length(PlannedFile file)
            {
                return (int) (file.size() <= wholeUpTo ? file.size() : Math.min(file.size(), length));
            }

            @Override
            public boolean goesOn()
            {
                return false;
            }
        };
    }

    /** The first bytes of the planned range, for formats that are read from there on. */
    static AheadRange begin(long wholeUpTo, int length)
    {
        return new AheadRange()
        {
            @Override
            public long offset(PlannedFile file)
            {
                return file.size() <= wholeUpTo ? 0 : file.start();
            }

            @Override
            public int length(PlannedFile file)
            {
                return (int) (file.size() <= wholeUpTo ? file.size() : Math.min(file.size() - file.start(), length));
            }

            @Override
            public boolean goesOn()
            {
                return true;
            }
        };
    }
}
