package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.BinaryWriter;
import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.client.Reply;
import io.skipbridge.client.WireType;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestBinaryProtocol
{
    @Test
    void writesACallAsThriftDoes()
    {
        BinaryWriter writer = new BinaryWriter();
        writer.message("list_tables", 7);
        writer.stringField(1, "é");
        writer.stop();
        String hex = "80010001" + "0000000b" + HexFormat.of().formatHex("list_tables".getBytes(StandardCharsets.US_ASCII)) + "00000007"
                + "0b0001" + "00000002" + "c3a9" + "00";
        byte[] frame = writer.frame();
        assertEquals("%08x".formatted(hex.length() / 2) + hex, HexFormat.of().formatHex(frame));
    }

    @Test
    void growsPastItsFirstBuffer()
    {
        BinaryWriter writer = new BinaryWriter();
        writer.message("plan", 1);
        writer.stringField(6, "x".repeat(100_000));
        writer.stop();
        byte[] frame = writer.frame();
        assertEquals(frame.length - 4, ByteBuffer.wrap(frame).getInt());
    }

    @Test
    void readsAResultAndSkipsFieldsItDoesNotKnow()
            throws Exception
    {
        Bytes bytes = reply("plan", 3)
                .field(12, 0)
                .field(11, 1).text("h-1")
                .field(15, 77).u8(12).i32(1).field(8, 1).i32(5).u8(0)
                .field(13, 78).u8(11).u8(10).i32(1).text("k").i64(9)
                .field(11, 2).text("127.0.0.1:9527")
                .field(10, 3).i64(41)
                .field(15, 5).u8(11).i32(2).text("a").text("b")
                .u8(0).u8(0);
        Plan plan = Reply.read(bytes.reader(), "plan", 3, WireType.STRUCT, Plan::read);
        assertEquals(new Plan("h-1", "127.0.0.1:9527", 41, "", List.of("a", "b"), "", "", 0, List.of(), Optional.empty()), plan);
    }

    @Test
    void throwsADeclaredFailure()
    {
        Bytes bytes = reply("apply_dynamic_filter", 4)
                .field(12, 1)
                .field(11, 1).text("PLAN_LOST").field(11, 2).text("EXTERNAL").field(11, 3).text("gone").field(11, 4).text("again").field(2, 5).u8(1).u8(0)
                .u8(0);
        BridgeFailure failure = assertThrows(BridgeFailure.class, () -> Reply.read(bytes.reader(), "apply_dynamic_filter", 4, WireType.STOP, _ -> null));
        assertTrue(failure.planLost());
        assertEquals("EXTERNAL gone again true", String.join(" ", failure.category(), failure.getMessage(), failure.remedy(), Boolean.toString(failure.retryable())));
    }

    @Test
    void refusesWhatDoesNotFit()
    {
        assertThrows(ProtocolException.class, () -> Reply.read(reply("plan", 4).u8(0).reader(), "plan", 5, WireType.STRUCT, Plan::read));
        assertThrows(ProtocolException.class, () -> Reply.read(reply("plan", 4).u8(0).reader(), "plan", 4, WireType.STRUCT, Plan::read));
        assertThrows(ProtocolException.class, () -> Reply.read(new Bytes().i32(0x48545450).reader(), "plan", 4, WireType.STRUCT, Plan::read));
        assertThrows(ProtocolException.class, () -> new BinaryReader(ByteBuffer.wrap(new byte[] {127, -1, -1, -1})).string());
        byte[] whole = reply("plan", 3).field(12, 0).field(11, 1).text("h-1").u8(0).u8(0).toByteArray();
        for (int length = 0; length < whole.length; length++) {
            ByteBuffer cut = ByteBuffer.wrap(Arrays.copyOf(whole, length));
            assertThrows(ProtocolException.class, () -> Reply.read(new BinaryReader(cut), "plan", 3, WireType.STRUCT, Plan::read));
        }
    }

    @Test
    void parsesAddresses()
    {
        assertEquals(List.of(new PlannerAddress("a", 1), new PlannerAddress("::1", 9527)), PlannerAddress.parseList("a:1, [::1]:9527"));
        assertThrows(IllegalArgumentException.class, () -> PlannerAddress.parse("nowhere"));
        assertThrows(IllegalArgumentException.class, () -> PlannerAddress.parse("host:70000"));
    }

    private static Bytes reply(String method, int sequence)
    {
        return new Bytes().i32(0x80010002).text(method).i32(sequence);
    }

    private static final class Bytes
    {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private final DataOutputStream output = new DataOutputStream(bytes);

        Bytes u8(int value)
        {
            return write(() -> output.writeByte(value));
        }

        Bytes i32(int value)
        {
            return write(() -> output.writeInt(value));
        }

        Bytes i64(long value)
        {
            return write(() -> output.writeLong(value));
        }

        Bytes field(int type, int id)
        {
            return write(() -> {
                output.writeByte(type);
                output.writeShort(id);
            });
        }

        Bytes text(String value)
        {
            byte[] encoded = value.getBytes(StandardCharsets.UTF_8);
            return i32(encoded.length).write(() -> output.write(encoded));
        }

        byte[] toByteArray()
        {
            return bytes.toByteArray();
        }

        BinaryReader reader()
        {
            return new BinaryReader(ByteBuffer.wrap(toByteArray()));
        }

        private Bytes write(Writing writing)
        {
            try {
                writing.run();
            }
            catch (IOException e) {
                throw new AssertionError(e);
            }
            return this;
        }

        private interface Writing
        {
            void run()
                    throws IOException;
        }
    }
}
