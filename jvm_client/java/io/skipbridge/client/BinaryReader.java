package io.skipbridge.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Reads Thrift's strict binary protocol from one frame. Strings and binaries are slices of the frame, so a frame must not be reused.
 *
 * <p>Every method fails with {@link ProtocolException} where the bytes do not fit; nothing here trusts a length.
 */
public final class BinaryReader
{
    private static final int MAX_DEPTH = 32;

    private final ByteBuffer frame;
    private final int mostElements;
    private byte fieldType;

    public BinaryReader(ByteBuffer frame)
    {
        this(frame, Integer.MAX_VALUE);
    }

    /** @param mostElements of a list or a map: what it costs here is many times what it costs on the wire */
    public BinaryReader(ByteBuffer frame, int mostElements)
    {
        this.frame = frame;
        this.mostElements = mostElements;
    }

    /** Reads the header of a reply; its kind is 2 (reply) or 3 (exception). */
    public int message(String method, int sequence)
    {
        int header = i32();
        if ((header & 0xffff0000) != BinaryWriter.VERSION_1) {
            throw new ProtocolException(String.format("reply does not start with version 1 of the strict binary protocol: 0x%08x", header));
        }
        String name = string();
        int answered = i32();
        if (!name.equals(method) || answered != sequence) {
            throw new ProtocolException(String.format("reply to %s #%d where %s #%d was asked", name, answered, method, sequence));
        }
        return header & 0xff;
    }

    /** The id of the struct's next field, or -1 at its end. Its type is then {@link #fieldType}. */
    public int nextField()
    {
        fieldType = i8();
        return fieldType == WireType.STOP ? -1 : i16();
    }

    /** Reads a field only if it has the type the client knows; skips it otherwise, as Thrift's own readers do. */
    public boolean is(byte type)
    {
        if (fieldType == type) {
            return true;
        }
        skip();
        return false;
    }

    public void skip()
    {
        skip(fieldType, 0);
    }

    public boolean bool()
    {
        return i8() != 0;
    }

    public byte i8()
    {
        require(1);
        return frame.get();
    }

    public short i16()
    {
        require(Short.BYTES);
        return frame.getShort();
    }

    public int i32()
    {
        require(Integer.BYTES);
        return frame.getInt();
    }

    public long i64()
    {
        require(Long.BYTES);
        return frame.getLong();
    }

    public double f64()
    {
        return Double.longBitsToDouble(i64());
    }

    public String string()
    {
        int length = length();
        String value = new String(frame.array(), frame.arrayOffset() + frame.position(), length, StandardCharsets.UTF_8);
        frame.position(frame.position() + length);
        return value;
    }

    public ByteBuffer binary()
    {
        int length = length();
        ByteBuffer value = ByteBuffer.wrap(frame.array(), frame.arrayOffset() + frame.position(), length).slice();
        frame.position(frame.position() + length);
        return value;
    }

    /** The size of a list whose elements have the given type. */
    public int list(byte elementType)
    {
        byte found = i8();
        int size = size();
        if (size > 0 && found != elementType) {
            throw new ProtocolException(String.format("list of %d elements of type %d where type %d was expected", size, found, elementType));
        }
        return size;
    }

    public List<String> strings()
    {
        int size = list(WireType.STRING);
        List<String> values = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            values.add(string());
        }
        return values;
    }

    public Map<String, String> stringMap()
    {
        byte keyType = i8();
        byte valueType = i8();
        int size = size();
        if (size > 0 && (keyType != WireType.STRING || valueType != WireType.STRING)) {
            throw new ProtocolException(String.format("map from type %d to type %d where strings were expected", keyType, valueType));
        }
        Map<String, String> values = new LinkedHashMap<>();
        for (int i = 0; i < size; i++) {
            values.put(string(), string());
        }
        return values;
    }

    public Map<String, Long> longMap()
    {
        byte keyType = i8();
        byte valueType = i8();
        int size = size();
        if (size > 0 && (keyType != WireType.STRING || valueType != WireType.I64)) {
            throw new ProtocolException(String.format("map from type %d to type %d where strings and numbers were expected", keyType, valueType));
        }
        Map<String, Long> values = new LinkedHashMap<>();
        for (int i = 0; i < size; i++) {
            values.put(string(), i64());
        }
        return values;
    }

    /** A list of structs; {@code read} reads one of them, its stop included. */
    public <T> List<T> structs(Function<BinaryReader, T> read)
    {
        int size = list(WireType.STRUCT);
        List<T> values = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            values.add(read.apply(this));
        }
        return Collections.unmodifiableList(values);
    }

    public boolean[] bools()
    {
        boolean[] values = new boolean[list(WireType.BOOL)];
        for (int i = 0; i < values.length; i++) {
            values[i] = bool();
        }
        return values;
    }

    private void skip(byte type, int depth)
    {
        if (depth > MAX_DEPTH) {
            throw new ProtocolException("structs nest deeper than " + MAX_DEPTH);
        }
        switch (type) {
            case WireType.BOOL:
            case WireType.BYTE:
                i8();
                break;
            case WireType.I16:
                i16();
                break;
            case WireType.I32:
                i32();
                break;
            case WireType.I64:
            case WireType.DOUBLE:
                i64();
                break;
            case WireType.STRING:
                binary();
                break;
            case WireType.STRUCT:
                for (byte field = i8(); field != WireType.STOP; field = i8()) {
                    i16();
                    skip(field, depth + 1);
                }
                break;
            case WireType.LIST:
            case WireType.SET:
                byte element = i8();
                for (int left = size(); left > 0; left--) {
                    skip(element, depth + 1);
                }
                break;
            case WireType.MAP:
                byte key = i8();
                byte value = i8();
                for (int left = size(); left > 0; left--) {
                    skip(key, depth + 1);
                    skip(value, depth + 1);
                }
                break;
            default:
                throw new ProtocolException("unknown field type " + type);
        }
    }

    private int size()
    {
        int size = i32();
        if (size < 0 || size > frame.remaining()) {
            throw new ProtocolException(String.format("collection of %d elements in %d bytes", size, frame.remaining()));
        }
        if (size > mostElements) {
            throw new ProtocolException(String.format("collection of %d elements, at most %d are taken", size, mostElements));
        }
        return size;
    }

    private int length()
    {
        int length = i32();
        if (length < 0 || length > frame.remaining()) {
            throw new ProtocolException(String.format("string of %d bytes in %d bytes", length, frame.remaining()));
        }
        return length;
    }

    private void require(int bytes)
    {
        if (frame.remaining() < bytes) {
            throw new ProtocolException(String.format("reply ends where %d more bytes were expected", bytes));
        }
    }
}
