package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.WireType;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The files that hold no matching row. A file is skipped only if its path, size and time are those named here. */
public final class SkippableFiles
{
    // Of a file whose path and size alone identify it.
    private static final long ANY_TIME = -1;
    private static final long BASE = 256;
    // A node of the map with its slot, a text without its letters, and an array of two.
    private static final long EACH = 136;

    private final long generation;
    private final long known;
    private final Map<String, long[]> skipped;
    private final List<String> notes;
    private final Map<String, Long> byIndex;
    private final long unnamed;

    private SkippableFiles(long generation, long known, Map<String, long[]> skipped, List<String> notes, Map<String, Long> byIndex, long unnamed)
    {
        this.generation = generation;
        this.known = known;
        this.skipped = skipped;
        this.notes = notes;
        this.byIndex = byIndex;
        this.unnamed = unnamed;
    }

    /** Skips nothing. */
    public static SkippableFiles nothing()
    {
        return new SkippableFiles(-1, 0, Collections.emptyMap(), Collections.emptyList(), Collections.emptyMap(), 0);
    }

    static SkippableFiles read(BinaryReader reader)
    {
        int protocol = -1;
        long generation = -1;
        long known = 0;
        long count = 0;
        String root = "";
        ByteBuffer files = ByteBuffer.allocate(0);
        List<String> notes = Collections.emptyList();
        Map<String, Long> byIndex = Collections.emptyMap();
        long unnamed = 0;
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1:
                    protocol = reader.is(WireType.I32) ? reader.i32() : protocol;
                    break;
                case 2:
                    generation = reader.is(WireType.I64) ? reader.i64() : generation;
                    break;
                case 4:
                    known = reader.is(WireType.I64) ? reader.i64() : known;
                    break;
                case 5:
                    count = reader.is(WireType.I64) ? reader.i64() : count;
                    break;
                case 6:
                    root = reader.is(WireType.STRING) ? reader.string() : root;
                    break;
                case 7:
                    files = reader.is(WireType.STRING) ? reader.binary() : files;
                    break;
                case 9:
                    notes = reader.is(WireType.LIST) ? reader.strings() : notes;
                    break;
                case 10:
                    byIndex = reader.is(WireType.MAP) ? reader.longMap() : byIndex;
                    break;
                case 11:
                    unnamed = reader.is(WireType.I64) ? reader.i64() : unnamed;
                    break;
                default:
                    reader.skip();
            }
        }
        PlannerClient.requireProtocol(protocol);
        return new SkippableFiles(generation, known, unpack(root, files, count), notes, byIndex, unnamed);
    }

    private static Map<String, long[]> unpack(String root, ByteBuffer packed, long count)
    {
        if (count == 0) {
            return Collections.emptyMap();
        }
        int fixed = 2 * Long.BYTES + Integer.BYTES;
        if (count < 0 || count > (packed.remaining() - Integer.BYTES) / fixed) {
            throw new ProtocolException(count + " files in " + packed.remaining() + " bytes");
        }
        int files = (int) count;
        ByteBuffer view = packed.order(ByteOrder.LITTLE_ENDIAN);
        int offsets = 2 * Long.BYTES * files;
        int text = offsets + Integer.BYTES * (files + 1);
        Map<String, long[]> skipped = new HashMap<>(files * 4 / 3 + 1);
        for (int i = 0; i < files; i++) {
            int begin = view.getInt(offsets + Integer.BYTES * i);
            int end = view.getInt(offsets + Integer.BYTES * (i + 1));
            if (begin < 0 || end < begin || end > packed.remaining() - text) {
                throw new ProtocolException("a path from " + begin + " to " + end + " in " + (packed.remaining() - text) + " bytes");
            }
            String path = root + new String(view.array(), view.arrayOffset() + text + begin, end - begin, StandardCharsets.UTF_8);
            skipped.put(path, new long[] {view.getLong(Long.BYTES * i), view.getLong(Long.BYTES * (files + i))});
        }
        return skipped;
    }

    /** Whether no row of the file with this path, size and time matches. */
    public boolean skips(String canonicalPath, long size, long modified)
    {
        long[] known = skipped.get(canonicalPath);
        return known != null && known[0] == size && known[1] == modified;
    }

    /** Whether a file with this path may be skipped, if its size and time are the known ones. */
    public boolean names(String canonicalPath)
    {
        return skipped.containsKey(canonicalPath);
    }

    /** The same of a file whose time its table does not record: nobody writes to it again, or only at its end. */
    public boolean skipsWritten(String canonicalPath, long size)
    {
        long[] known = skipped.get(canonicalPath);
        return known != null && known[0] == size && known[1] == ANY_TIME;
    }

    /** Whether any file is skipped. */
    public boolean skipsAny()
    {
        return !skipped.isEmpty();
    }

    /** Whether at least half of the files known to the planner are skipped. */
    public boolean skipsMost()
    {
        return !skipped.isEmpty() && skipped.size() >= known / 2;
    }

    /** The number of files named. */
    public int size()
    {
        return skipped.size();
    }

    /** About what it costs in memory, by which caches bound theirs. */
    public long bytes()
    {
        return BASE + skipped.keySet().stream().mapToLong(path -> EACH + path.length()).sum();
    }

    /** The generation of the index; -1 without an index. */
    public long generation()
    {
        return generation;
    }

    /** How many files each index excludes, those that are not named too. */
    public Map<String, Long> byIndex()
    {
        return byIndex;
    }

    /** The number of files that hold no matching row either and are read, because the answer would be too long. */
    public long unnamed()
    {
        return unnamed;
    }

    /** Why an index was not used, with the remedy. */
    public List<String> notes()
    {
        return notes;
    }
}
