package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.WireType;

/** An open plan of a scan. */
public final class FilePlan
{
    private final String handle;
    private final String endpoint;
    private final long generation;
    private final FileBatch first;

    private FilePlan(String handle, String endpoint, long generation, FileBatch first)
    {
        this.handle = handle;
        this.endpoint = endpoint;
        this.generation = generation;
        this.first = first;
    }

    static FilePlan read(BinaryReader reader)
    {
        String handle = "";
        String endpoint = "";
        long generation = -1;
        String rowFilter = "";
        FileBatch first = null;
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1:
                    handle = reader.is(WireType.STRING) ? reader.string() : handle;
                    break;
                case 2:
                    endpoint = reader.is(WireType.STRING) ? reader.string() : endpoint;
                    break;
                case 3:
                    generation = reader.is(WireType.I64) ? reader.i64() : generation;
                    break;
                case 7:
                    rowFilter = reader.is(WireType.STRING) ? reader.string() : rowFilter;
                    break;
                case 10:
                    first = reader.is(WireType.STRUCT) ? FileBatch.read(reader) : first;
                    break;
                default:
                    reader.skip();
            }
        }
        if (!rowFilter.isEmpty()) {
            throw new ProtocolException("files that hold rows of other versions, which these hooks do not filter");
        }
        return new FilePlan(handle, endpoint, generation, first);
    }

    /** Empty if the plan is closed already. */
    public String handle()
    {
        return handle;
    }

    /** host:port of the process that goes on with this plan. */
    public String endpoint()
    {
        return endpoint;
    }

    /** Of the index; -1 without one. */
    public long generation()
    {
        return generation;
    }

    /** The first batch; null if it was not ready yet. */
    public FileBatch first()
    {
        return first;
    }
}
