package io.skipbridge.hive.wire;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** Writes one call of Thrift's strict binary protocol as one frame: length, message header, argument struct. */
final class FrameWriter
{
    static final int VERSION_1 = 0x80010000;
    private static final int CALL = 1;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(1024);
    private final DataOutputStream out = new DataOutputStream(bytes);

    FrameWriter(String method, int sequence)
    {
        i32(0);
        i32(VERSION_1 | CALL);
        string(method);
        i32(sequence);
    }

    void structField(int id)
    {
        field(FrameReader.STRUCT, id);
    }

    void stringField(int id, String value)
    {
        field(FrameReader.STRING, id);
        string(value);
    }

    void i32Field(int id, int value)
    {
        field(FrameReader.I32, id);
        i32(value);
    }

    void i64Field(int id, long value)
    {
        field(FrameReader.I64, id);
        i32((int) (value >> 32));
        i32((int) value);
    }

    void stringListField(int id, List<String> values)
    {
        field(FrameReader.LIST, id);
        i8(FrameReader.STRING);
        i32(values.size());
        values.forEach(this::string);
    }

    void stringMapField(int id, Map<String, String> values)
    {
        field(FrameReader.MAP, id);
        i8(FrameReader.STRING);
        i8(FrameReader.STRING);
        i32(values.size());
        values.forEach((key, value) -> {
            string(key);
            string(value);
        });
    }

    void stop()
    {
        i8(FrameReader.STOP);
    }

    byte[] frame()
    {
        byte[] frame = bytes.toByteArray();
        ByteBuffer.wrap(frame).putInt(0, frame.length - Integer.BYTES);
        return frame;
    }

    private void field(byte type, int id)
    {
        i8(type);
        i8((byte) (id >> 8));
        i8((byte) id);
    }

    private void string(String value)
    {
        byte[] encoded = value.getBytes(StandardCharsets.UTF_8);
        i32(encoded.length);
        bytes.write(encoded, 0, encoded.length);
    }

    private void i8(byte value)
    {
        bytes.write(value);
    }

    private void i32(int value)
    {
        try {
            out.writeInt(value);
        }
        catch (IOException e) {
            throw new UncheckedIOException("memory does not fail", e);
        }
    }
}
