package io.skipbridge.hive.wire;

/** A file, or a range of its bytes, as the planner wants it read. */
public final class PlannedFile
{
    /** Of a file whose time is not known. */
    public static final long ANY_TIME = -1;

    private final String path;
    private final long start;
    private final long length;
    private final long size;
    private final long modified;
    private final ReaderSpec reader;
    private final String partition;

    /**
     * @param path a canonical URI
     * @param size of the whole file
     * @param modified in milliseconds since the epoch
     * @param partition its name, such as {@code day=2024-05-01}; empty where the table has none
     */
    public PlannedFile(String path, long start, long length, long size, long modified, ReaderSpec reader, String partition)
    {
        this.path = path;
        this.start = start;
        this.length = length;
        this.size = size;
        this.modified = modified;
        this.reader = reader;
        this.partition = partition;
    }

    public String path()
    {
        return path;
    }

    public long start()
    {
        return start;
    }

    public long length()
    {
        return length;
    }

    public long size()
    {
        return size;
    }

    public long modified()
    {
        return modified;
    }

    public ReaderSpec reader()
    {
        return reader;
    }

    public String partition()
    {
        return partition;
    }
}
