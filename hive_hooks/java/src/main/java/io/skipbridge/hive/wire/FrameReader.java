package io.skipbridge.hive.wire;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads Thrift's strict binary protocol from one frame. Every length is checked. */
final class FrameReader
{
    static final byte STOP = 0;
    static final byte BOOL = 2;
    static final byte I8 = 3;
    static final byte DOUBLE = 4;
    static final byte I16 = 6;
    static final byte I32 = 8;
    static final byte I64 = 10;
    static final byte STRING = 11;
    static final byte STRUCT = 12;
    static final byte MAP = 13;
    static final byte SET = 14;
    static final byte LIST = 15;

    private static final int MAX_DEPTH = 32;
    /** Of a list or a map: what it costs here is many times what it costs on the wire. */
    private static final int MOST_ELEMENTS = 100_000;

    private final ByteBuffer frame;
    private byte fieldType;

    FrameReader(byte[] frame)
    {
        this.frame = ByteBuffer.wrap(frame);
    }

    /** Reads the header of a reply; its kind is 2 (reply) or 3 (exception). */
    int message(String method, int sequence)
    {
        int header = i32();
        if ((header & 0xffff0000) != FrameWriter.VERSION_1) {
            throw new ProtocolException(String.format("the answer is not of Thrift's strict binary protocol: 0x%08x", header));
        }
        String name = string();
        int answered = i32();
        if (!name.equals(method) || answered != sequence) {
            throw new ProtocolException(String.format("an answer to %s #%d where %s #%d was asked", name, answered, method, sequence));
        }
        return header & 0xff;
    }

    /** The id of the struct's next field, or -1 at its end. */
    int nextField()
    {
        fieldType = i8();
        return fieldType == STOP ? -1 : i16();
    }

    /** Whether the field has this type. A field of another type is skipped, as in Thrift's own readers. */
    boolean is(byte type)
    {
        if (fieldType == type) {
            return true;
        }
        skip();
        return false;
    }

    void skip()
    {
        skip(fieldType, 0);
    }

    boolean bool()
    {
        return i8() != 0;
    }

    int i32()
    {
        require(Integer.BYTES);
        return frame.getInt();
    }

    long i64()
    {
        require(Long.BYTES);
        return frame.getLong();
    }

    String string()
    {
        int length = length();
        String value = new String(frame.array(), frame.position(), length, StandardCharsets.UTF_8);
        advance(length);
        return value;
    }

    ByteBuffer binary()
    {
        int length = length();
        ByteBuffer value = ByteBuffer.wrap(frame.array(), frame.position(), length).slice();
        advance(length);
        return value;
    }

    List<String> strings()
    {
        byte type = i8();
        int size = size();
        if (size > 0 && type != STRING) {
            throw new ProtocolException("a list of type " + type + " where strings were expected");
        }
        List<String> values = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            values.add(string());
        }
        return values;
    }

    /** The number of structs of a list, which follow. */
    int structs()
    {
        byte type = i8();
        int size = size();
        if (size > 0 && type != STRUCT) {
            throw new ProtocolException("a list of type " + type + " where structs were expected");
        }
        return size;
    }

    Map<String, String> stringMap()
    {
        byte key = i8();
        byte value = i8();
        int size = size();
        if (size > 0 && (key != STRING || value != STRING)) {
            throw new ProtocolException("a map of types " + key + " and " + value + " where strings were expected");
        }
        Map<String, String> values = new HashMap<>();
        for (int i = 0; i < size; i++) {
            values.put(string(), string());
        }
        return values;
    }

    Map<String, Long> longs()
    {
        byte key = i8();
        byte value = i8();
        int size = size();
        if (size > 0 && (key != STRING || value != I64)) {
            throw new ProtocolException("a map of types " + key + " and " + value + " where numbers were expected");
        }
        Map<String, Long> values = new LinkedHashMap<>();
        for (int i = 0; i < size; i++) {
            values.put(string(), i64());
        }
        return values;
    }

    private byte i8()
    {
        require(1);
        return frame.get();
    }

    private short i16()
    {
        require(Short.BYTES);
        return frame.getShort();
    }

    private void skip(byte type, int depth)
    {
        if (depth > MAX_DEPTH) {
            throw new ProtocolException("structs nest deeper than " + MAX_DEPTH);
        }
        switch (type) {
            case BOOL:
            case I8:
                i8();
                break;
            case I16:
                i16();
                break;
            case I32:
                i32();
                break;
            case I64:
            case DOUBLE:
                i64();
                break;
            case STRING:
                advance(length());
                break;
            case STRUCT:
                for (byte field = i8(); field != STOP; field = i8()) {
                    i16();
                    skip(field, depth + 1);
                }
                break;
            case LIST:
            case SET:
                byte element = i8();
                for (int left = size(); left > 0; left--) {
                    skip(element, depth + 1);
                }
                break;
            case MAP:
                byte key = i8();
                byte value = i8();
                for (int left = size(); left > 0; left--) {
                    skip(key, depth + 1);
                    skip(value, depth + 1);
                }
                break;
            default:
                throw new ProtocolException("a field of unknown type " + type);
        }
    }

    private int size()
    {
        int size = bounded("a collection of %d elements");
        if (size > MOST_ELEMENTS) {
            throw new ProtocolException("a collection of " + size + " elements, at most " + MOST_ELEMENTS + " are taken");
        }
        return size;
    }

    private int length()
    {
        return bounded("a string of %d bytes");
    }

    private int bounded(String what)
    {
        int length = i32();
        if (length < 0 || length > frame.remaining()) {
            throw new ProtocolException(String.format(what + " in %d bytes", length, frame.remaining()));
        }
        return length;
    }

    private void require(int bytes)
    {
        if (frame.remaining() < bytes) {
            throw new ProtocolException("the answer ends where " + bytes + " more bytes were expected");
        }
    }

    // Since Java 9 Buffer.position has another return type. Calling it on Buffer works with all versions.
    private void advance(int bytes)
    {
        java.nio.Buffer buffer = frame;
        buffer.position(buffer.position() + bytes);
    }
}
