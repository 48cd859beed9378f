package io.skipbridge.trino.read.footer;

import java.util.Arrays;

/**
 * Reads Thrift's compact protocol, the encoding of footers and page headers, in place. Damaged bytes end in an
 * {@link IndexOutOfBoundsException}.
 */
public final class CompactReader
{
    private static final int TRUE = 1;
    private static final int STRUCT = 12;
    private static final int MAX_DEPTH = 64;

    private final byte[] bytes;
    private final int end;
    private int position;
    private int field;
    private int type;

    public CompactReader(byte[] bytes, int start, int end)
    {
        this.bytes = bytes;
        this.position = start;
        this.end = end;
    }

    public int position()
    {
        return position;
    }

    /** Continues after a field that was read elsewhere. */
    void resume(int newPosition, int lastField)
    {
        position = newPosition;
        field = lastField;
    }

    /** Begins a struct. Returns the argument with which {@link #leave} continues the outer one. */
    int enter()
    {
        int outer = field;
        field = 0;
        return outer;
    }

    void leave(int outer)
    {
        field = outer;
    }

    /** The id of the next field, or 0 at the struct's end. */
    public int next()
    {
        int header = u8();
        if (header == 0) {
            return 0;
        }
        type = header & 0x0f;
        int delta = header >>> 4;
        field = delta == 0 ? (int) i64() : field + delta;
        return field;
    }

    boolean bool()
    {
        return type == TRUE;
    }

    public int i32()
    {
        return (int) i64();
    }

    long i64()
    {
        long raw = varint();
        return (raw >>> 1) ^ -(raw & 1);
    }

    /** The size of a list; its elements follow. */
    int list()
    {
        int header = u8();
        int size = header >>> 4;
        type = header & 0x0f;
        size = size == 15 ? (int) varint() : size;
        if (size < 0 || size > end - position) {
            throw new IndexOutOfBoundsException("list of " + size + " elements in " + (end - position) + " bytes");
        }
        return size;
    }

    byte[] binary()
    {
        int length = (int) varint();
        int start = position;
        advance(length);
        return Arrays.copyOfRange(bytes, start, position);
    }

    public void skip()
    {
        skip(type, 0);
    }

    void skipStruct()
    {
        skip(STRUCT, 0);
    }

    private void skip(int skipped, int depth)
    {
        if (depth > MAX_DEPTH) {
            throw new IndexOutOfBoundsException("structs nest deeper than " + MAX_DEPTH);
        }
        switch (skipped) {
            case 1, 2 -> {}
            case 3 -> advance(1);
            case 4, 5, 6 -> varint();
            case 7 -> advance(Double.BYTES);
            case 8 -> advance((int) varint());
            case 9, 10 -> {
                int size = list();
                int element = type;
                for (int i = 0; i < size; i++) {
                    skipElement(element, depth);
                }
            }
            case 11 -> {
                int size = (int) varint();
                int types = size == 0 ? 0 : u8();
                for (int i = 0; i < size; i++) {
                    skipElement(types >>> 4, depth);
                    skipElement(types & 0x0f, depth);
                }
            }
            case 12 -> {
                for (int header = u8(); header != 0; header = u8()) {
                    if (header >>> 4 == 0) {
                        varint();
                    }
                    skip(header & 0x0f, depth + 1);
                }
            }
            default -> throw new IndexOutOfBoundsException("unknown type " + skipped);
        }
    }

    /** Inside collections a boolean is a byte of its own. */
    private void skipElement(int element, int depth)
    {
        if (element == 1 || element == 2) {
            advance(1);
        }
        else {
            skip(element, depth + 1);
        }
    }

    private void advance(int length)
    {
        if (length < 0 || length > end - position) {
            throw new IndexOutOfBoundsException("value of " + length + " bytes in " + (end - position));
        }
        position += length;
    }

    private int u8()
    {
        if (position >= end) {
            throw new IndexOutOfBoundsException("footer ends inside a value");
        }
        return bytes[position++] & 0xff;
    }

    private long varint()
    {
        long value = 0;
        for (int shift = 0; shift < Long.SIZE; shift += 7) {
            int b = u8();
            value |= (long) (b & 0x7f) << shift;
            if (b < 0x80) {
                return value;
            }
        }
        throw new IndexOutOfBoundsException("number of more than 64 bits");
    }
}
