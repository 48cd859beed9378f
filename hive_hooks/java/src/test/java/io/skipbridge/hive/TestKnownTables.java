package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

import static org.junit.jupiter.api.Assertions.assertEquals;

class TestKnownTables
{
    @Test
    @Timeout(300)
    void asksSoonAboutTheUndecidedTablesOfEachQuery()
            throws Exception
    {
        try (SlowPlanner planner = new SlowPlanner("db.a", "db.b")) {
            KnownTables tables = new KnownTables();
            Configuration configuration = new Configuration(false);
            configuration.set(Settings.PLANNER, "127.0.0.1:" + planner.port());
            configuration.set(Settings.TIMEOUT, "60000");
            configuration.set(Settings.REFRESH, "3600000");
            tables.of(configuration, Collections.singleton("db.a"));
            tables.of(configuration, Collections.singleton("db.b"));
            planner.decided.await();
        }
    }

    /** A planner is known by its address and by how often it is asked, both of which sessions choose here. */
    @Test
    @Timeout(300)
    void noMorePlannersAreKnownThanTheBound()
            throws Exception
    {
        try (SlowPlanner planner = new SlowPlanner()) {
            KnownTables tables = new KnownTables();
            Configuration configuration = new Configuration(false);
            configuration.set(Settings.PLANNER, "127.0.0.1:" + planner.port());
            configuration.set(Settings.TIMEOUT, "60000");
            for (int i = 0; i < 80; i++) {
                configuration.set(Settings.REFRESH, String.valueOf(3_600_000 + i));
                tables.of(configuration, Collections.singleton("db.t" + i));
            }
            assertEquals(64, planner.tables());
            configuration.set(Settings.REFRESH, "3600000");
            tables.of(configuration, Collections.singleton("db.other"));
            assertEquals(65, planner.tables());
        }
    }

    /** Decides about each table at the second question. */
    private static final class SlowPlanner
            implements AutoCloseable
    {
        private static final int VERSION_1 = 0x80010000;
        private static final int REPLY = 2;
        private static final byte I32 = 8;
        private static final byte STRING = 11;
        private static final byte STRUCT = 12;
        private static final byte LIST = 15;

        final CountDownLatch decided;
        private final ServerSocket server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        private final Set<String> asked = ConcurrentHashMap.newKeySet();
        private final Set<String> open;

        SlowPlanner(String... tables)
                throws IOException
        {
            open = new HashSet<>(Arrays.asList(tables));
            decided = new CountDownLatch(tables.length);
            Thread thread = new Thread(this::serve, "slow-planner");
            thread.setDaemon(true);
            thread.start();
        }

        int port()
        {
            return server.getLocalPort();
        }

        /** How many were asked about. */
        int tables()
        {
            return asked.size();
        }

        private void serve()
        {
            while (!server.isClosed()) {
                try (Socket socket = server.accept()) {
                    answer(new DataInputStream(socket.getInputStream()), socket);
                }
                catch (IOException e) {
                    // the test has ended
                }
            }
        }

        private void answer(DataInputStream in, Socket socket)
                throws IOException
        {
            in.readInt();
            in.readInt();
            String method = string(in);
            int sequence = in.readInt();
            in.readFully(new byte[4]);
            int size = in.readInt();
            List<String> undecided = new ArrayList<>();
            List<String> known = new ArrayList<>();
            for (int i = 0; i < size; i++) {
                String table = string(in);
                (asked.add(table) ? undecided : known).add(table);
            }
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(VERSION_1 | REPLY);
            string(out, method);
            out.writeInt(sequence);
            field(out, STRUCT, 0);
            field(out, I32, 1);
            out.writeInt(2);
            field(out, LIST, 4);
            out.writeByte(STRING);
            out.writeInt(undecided.size());
            for (String table : undecided) {
                string(out, table);
            }
            out.writeByte(0);
            out.writeByte(0);
            DataOutputStream frame = new DataOutputStream(socket.getOutputStream());
            frame.writeInt(bytes.size());
            bytes.writeTo(frame);
            frame.flush();
            known.stream().filter(open::remove).forEach(table -> decided.countDown());
        }

        private static void field(DataOutputStream out, byte type, int id)
                throws IOException
        {
            out.writeByte(type);
            out.writeShort(id);
        }

        private static String string(DataInputStream in)
                throws IOException
        {
            byte[] bytes = new byte[in.readInt()];
            in.readFully(bytes);
            return new String(bytes, StandardCharsets.UTF_8);
        }

        private static void string(DataOutputStream out, String text)
                throws IOException
        {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            out.writeInt(bytes.length);
            out.write(bytes);
        }

        @Override
        public void close()
                throws IOException
        {
            server.close();
        }
    }
}
