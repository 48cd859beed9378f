package io.skipbridge.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Writes one call of Thrift's strict binary protocol as one frame: length, message header, argument struct.
 */
public final class BinaryWriter
{
    static final int VERSION_1 = 0x80010000;
    private static final byte CALL = 1;

    private byte[] buffer = new byte[256];
    private int length = Integer.BYTES;

    public void message(String method, int sequence)
    {
        i32(VERSION_1 | CALL);
        string(method);
        i32(sequence);
    }

    public void field(byte type, int id)
    {
        ensure(3);
        buffer[length++] = type;
        buffer[length++] = (byte) (id >> 8);
        buffer[length++] = (byte) id;
    }

    public void stop()
    {
        ensure(1);
        buffer[length++] = WireType.STOP;
    }

    public void i32(int value)
    {
        ensure(Integer.BYTES);
        ByteBuffer.wrap(buffer).putInt(length, value);
        length += Integer.BYTES;
    }

    public void i64(long value)
    {
        ensure(Long.BYTES);
        ByteBuffer.wrap(buffer).putLong(length, value);
        length += Long.BYTES;
    }

    public void string(String value)
    {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        i32(bytes.length);
        ensure(bytes.length);
        System.arraycopy(bytes, 0, buffer, length, bytes.length);
        length += bytes.length;
    }

    public void stringField(int id, String value)
    {
        field(WireType.STRING, id);
        string(value);
    }

    public void i32Field(int id, int value)
    {
        field(WireType.I32, id);
        i32(value);
    }

    public void i64Field(int id, long value)
    {
        field(WireType.I64, id);
        i64(value);
    }

    public void boolField(int id, boolean value)
    {
        field(WireType.BOOL, id);
        ensure(1);
        buffer[length++] = (byte) (value ? 1 : 0);
    }

    /** A list of structs; each is written to its end, its stop included. */
    public <T> void structListField(int id, List<T> values, Consumer<T> write)
    {
        field(WireType.LIST, id);
        ensure(1);
        buffer[length++] = WireType.STRUCT;
        i32(values.size());
        values.forEach(write);
    }

    public void stringListField(int id, List<String> values)
    {
        field(WireType.LIST, id);
        ensure(1);
        buffer[length++] = WireType.STRING;
        i32(values.size());
        values.forEach(this::string);
    }

    public void stringMapField(int id, Map<String, String> values)
    {
        field(WireType.MAP, id);
        ensure(2);
        buffer[length++] = WireType.STRING;
        buffer[length++] = WireType.STRING;
        i32(values.size());
        values.forEach((key, value) -> {
            string(key);
            string(value);
        });
    }

    /** The frame with its length in front. */
    public byte[] frame()
    {
        ByteBuffer.wrap(buffer).putInt(0, length - Integer.BYTES);
        return Arrays.copyOf(buffer, length);
    }

    private void ensure(int more)
    {
        if (length + more > buffer.length) {
            buffer = Arrays.copyOf(buffer, Math.max(buffer.length * 2, length + more));
        }
    }
}
