package io.skipbridge.hive.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Answers as a planner sends them. */
public final class FileAnswers
{
    private FileAnswers() {}

    /** An answer that names these files. */
    public static SkippableFiles naming(String... paths)
    {
        return read(answer(2, false, paths.length, "", files(paths)));
    }

    static SkippableFiles read(byte[] struct)
    {
        return SkippableFiles.read(new BinaryReader(ByteBuffer.wrap(struct), PlannerClient.MOST_ELEMENTS));
    }

    /** Files with sizes 10, 11 ... and times 100, 101 ... */
    static byte[] files(String... paths)
    {
        byte[] text = String.join("", paths).getBytes(StandardCharsets.UTF_8);
        ByteBuffer packed = ByteBuffer.allocate(20 * paths.length + 4 + text.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < paths.length; i++) {
            packed.putLong(10 + i);
        }
        for (int i = 0; i < paths.length; i++) {
            packed.putLong(100 + i);
        }
        int offset = 0;
        packed.putInt(offset);
        for (String path : paths) {
            offset += path.getBytes(StandardCharsets.UTF_8).length;
            packed.putInt(offset);
        }
        return packed.put(text).array();
    }

    static byte[] answer(int protocol, boolean all, long skipped, String root, byte[] files)
    {
        byte[] text = root.getBytes(StandardCharsets.UTF_8);
        ByteBuffer struct = ByteBuffer.allocate(64 + text.length + files.length);
        struct.put(WireType.I32).putShort((short) 1).putInt(protocol);
        struct.put(WireType.I64).putShort((short) 2).putLong(7);
        struct.put(WireType.BOOL).putShort((short) 3).put((byte) (all ? 1 : 0));
        struct.put(WireType.I64).putShort((short) 5).putLong(skipped);
        struct.put(WireType.STRING).putShort((short) 6).putInt(text.length).put(text);
        struct.put(WireType.STRING).putShort((short) 7).putInt(files.length).put(files);
        struct.put(WireType.I16).putShort((short) 99).putShort((short) 1);
        struct.put(WireType.STOP);
        return Arrays.copyOf(struct.array(), struct.position());
    }
}
