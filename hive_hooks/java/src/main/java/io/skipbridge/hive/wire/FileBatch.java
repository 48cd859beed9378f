package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.WireType;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Some splits of a plan; each is a list of files that one task reads. */
public final class FileBatch
{
    private final long nextToken;
    private final boolean finished;
    private final List<List<PlannedFile>> splits;

    private FileBatch(long nextToken, boolean finished, List<List<PlannedFile>> splits)
    {
        this.nextToken = nextToken;
        this.finished = finished;
        this.splits = splits;
    }

    static FileBatch read(BinaryReader reader)
    {
        long nextToken = 0;
        boolean finished = false;
        int splitCount = 0;
        int fileCount = 0;
        int logCount = 0;
        ByteBuffer payload = ByteBuffer.allocate(0);
        List<ReaderSpec> readers = new ArrayList<>();
        List<String> partitions = new ArrayList<>();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1:
                    nextToken = reader.is(WireType.I64) ? reader.i64() : nextToken;
                    break;
                case 2:
                    finished = reader.is(WireType.BOOL) ? reader.bool() : finished;
                    break;
                case 3:
                    splitCount = reader.is(WireType.I32) ? reader.i32() : splitCount;
                    break;
                case 4:
                    fileCount = reader.is(WireType.I32) ? reader.i32() : fileCount;
                    break;
                case 5:
                    for (int left = reader.is(WireType.LIST) ? reader.list(WireType.STRUCT) : 0; left > 0; left--) {
                        partitions.add(partition(reader));
                    }
                    break;
                case 6:
                    payload = reader.is(WireType.STRING) ? reader.binary() : payload;
                    break;
                case 8:
                    for (int left = reader.is(WireType.LIST) ? reader.list(WireType.STRUCT) : 0; left > 0; left--) {
                        readers.add(ReaderSpec.read(reader));
                    }
                    break;
                case 9:
                    logCount = reader.is(WireType.I32) ? reader.i32() : logCount;
                    break;
                default:
                    reader.skip();
            }
        }
        if (logCount != 0) {
            throw new ProtocolException("files with logs, which these hooks do not merge");
        }
        return new FileBatch(nextToken, finished, unpack(payload.order(ByteOrder.LITTLE_ENDIAN), splitCount, fileCount, readers, partitions));
    }

    /** The name of a partition, which holds its values. */
    private static String partition(BinaryReader reader)
    {
        String name = "";
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            if (id == 1) {
                name = reader.is(WireType.STRING) ? reader.string() : name;
            }
            else {
                reader.skip();
            }
        }
        return name;
    }

    /** See bridge.thrift. */
    private static List<List<PlannedFile>> unpack(ByteBuffer payload, int splits, int files, List<ReaderSpec> readers, List<String> partitions)
    {
        List<List<PlannedFile>> found = new ArrayList<>();
        if (splits == 0) {
            return found;
        }
        long fixed = 4L * (splits + 1) + 4L * splits + 8L * 4 * files + 4L * 2 * files + 4L * (files + 1);
        if (splits < 0 || files < 0 || fixed > payload.remaining()) {
            throw new ProtocolException(splits + " splits of " + files + " files in " + payload.remaining() + " bytes");
        }
        int starts = 4 * (splits + 1) + 4 * splits;
        int partitionAt = starts + 8 * 4 * files;
        int readerAt = partitionAt + 4 * files;
        int offsets = readerAt + 4 * files;
        int text = offsets + 4 * (files + 1);
        List<PlannedFile> all = new ArrayList<>(files);
        for (int i = 0; i < files; i++) {
            int begin = payload.getInt(offsets + 4 * i);
            int end = payload.getInt(offsets + 4 * (i + 1));
            int reader = payload.getInt(readerAt + 4 * i);
            if (begin < 0 || end < begin || end > payload.remaining() - text || reader < 0 || reader >= readers.size()) {
                throw new ProtocolException("a path from " + begin + " to " + end + " and reader " + reader + " of " + readers.size());
            }
            int partition = payload.getInt(partitionAt + 4 * i);
            if (partition < 0 || partition >= partitions.size()) {
                throw new ProtocolException("the partition " + partition + " of " + partitions.size());
            }
            all.add(new PlannedFile(
                    new String(payload.array(), payload.arrayOffset() + text + begin, end - begin, StandardCharsets.UTF_8),
                    payload.getLong(starts + 8 * i),
                    payload.getLong(starts + 8 * (files + i)),
                    payload.getLong(starts + 8 * (2 * files + i)),
                    payload.getLong(starts + 8 * (3 * files + i)),
                    readers.get(reader),
                    partitions.get(partition)));
        }
        for (int i = 0; i < splits; i++) {
            int first = payload.getInt(4 * i);
            int next = payload.getInt(4 * (i + 1));
            if ((i == 0 && first != 0) || next < first || next > files || (i == splits - 1 && next != files)) {
                throw new ProtocolException("a split of the files " + first + " to " + next + " of " + files);
            }
            found.add(new ArrayList<>(all.subList(first, next)));
        }
        return found;
    }

    /** What to ask for next. */
    public long nextToken()
    {
        return nextToken;
    }

    /** Whether nothing follows. */
    public boolean finished()
    {
        return finished;
    }

    public List<List<PlannedFile>> splits()
    {
        return splits;
    }
}
