package io.skipbridge.hive;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.SerializationUtilities;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.plan.TableScanDesc;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPNull;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.TextInputFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** The law of listings through the filter: Hadoop lists every file but those whose path, size and time are the known ones. */
class TestFilteredListings
{
    private static final String[] NAMES = {"a", "b c", "é", "x%20y", "p=1", "_SUCCESS", ".a.crc", "a.csv", "A", "名", "$path", "a+b", "0"};
    private static final byte[][] CONTENTS = {{}, "h\n".getBytes(), "h".getBytes(), "h\n1,2\n".getBytes(), "\r\n".getBytes(), "\ufeffh\n7\n".getBytes(StandardCharsets.UTF_8)};
    private static final long NOW = 1_700_000_000_000L;

    @TempDir
    java.nio.file.Path temporary;

    private final Random random = new Random(Long.getLong("skipbridge.seed", 11));
    private int left;
    private int skipped;

    @Test
    @Timeout(300)
    void aFileIsLeftOutOnlyAsItIsKnown()
            throws Exception
    {
        for (int round = 0; round < 150; round++) {
            java.nio.file.Path root = Files.createDirectory(temporary.resolve("t" + round));
            List<java.nio.file.Path> files = new ArrayList<>();
            List<java.nio.file.Path> directories = new ArrayList<>();
            int paths = 1 + random.nextInt(3);
            for (int i = 0; i < paths; i++) {
                fill(Files.createDirectory(root.resolve("d=" + i)), files, directories, 0);
            }
            boolean dies = random.nextInt(10) == 0;
            JobConf job = job(root, paths, files);
            Set<String> listed = names(new Listing().listStatus(job));
            Answer answer = new Answer(files, directories);
            Set<String> expected = new TreeSet<>();
            for (FileStatus file : new Listing().listStatus(job)) {
                boolean given = Arrays.asList(FileInputFormat.getInputPaths(job)).contains(file.getPath());
                if (dies || given || !answer.names(file)) {
                    expected.add(file.getPath().toString());
                }
            }
            try (Planner planner = new Planner(answer.frame(), dies)) {
                filtered(job, planner.port(), round);
                assertEquals(expected, names(new Listing().listStatus(job)), "round " + round);
            }
            left += listed.size();
            skipped += listed.size() - expected.size();
        }
        assertTrue(skipped > left / 5, skipped + " of " + left);
    }

    private void fill(java.nio.file.Path directory, List<java.nio.file.Path> files, List<java.nio.file.Path> directories, int depth)
            throws IOException
    {
        directories.add(directory);
        List<String> names = new ArrayList<>(Arrays.asList(NAMES));
        Collections.shuffle(names, random);
        for (String name : names.subList(0, random.nextInt(6))) {
            java.nio.file.Path path = directory.resolve(name);
            if (depth < 2 && random.nextInt(8) == 0) {
                fill(Files.createDirectory(path), files, directories, depth + 1);
                continue;
            }
            if (!files.isEmpty() && random.nextInt(8) == 0) {
                Files.createSymbolicLink(path, files.get(random.nextInt(files.size())));
            }
            else {
                Files.write(path, CONTENTS[random.nextInt(CONTENTS.length)]);
                Files.setLastModifiedTime(path, FileTime.fromMillis(NOW + random.nextInt(3)));
            }
            files.add(path);
        }
    }

    private JobConf job(java.nio.file.Path root, int paths, List<java.nio.file.Path> files)
            throws IOException
    {
        JobConf job = new JobConf();
        for (int i = 0; i < paths; i++) {
            FileInputFormat.addInputPath(job, new Path(new Path(root.toUri()), "d=" + i));
        }
        java.nio.file.Path file = files.isEmpty() ? root : files.get(random.nextInt(files.size()));
        if (random.nextInt(5) == 0 && !file.equals(root) && !"_.".contains(file.getFileName().toString().substring(0, 1))) {
            FileInputFormat.addInputPath(job, new Path(file.toUri()));
        }
        // Without it a directory below is an error of Hadoop's.
        job.setBoolean("mapreduce.input.fileinputformat.input.dir.recursive", true);
        job.setInt("mapreduce.input.fileinputformat.list-status.num-threads", random.nextBoolean() ? 1 : 4);
        return job;
    }

    /** As Hive has told it by the job of the table. */
    private static void filtered(JobConf job, int port, int round)
    {
        job.set("skipbridge.planner", "127.0.0.1:" + port);
        job.set("skipbridge.planner.timeout.ms", "60000");
        job.set("hive.query.id", "q" + round);
        job.set("name", "s.t");
        job.set("schema.evolution.columns", "c");
        job.set("schema.evolution.columns.types", "int");
        job.set("skipbridge.filtered_table", "s.t");
        job.setInputFormat(BridgeTextInputFormat.class);
        List<ExprNodeDesc> column = new ArrayList<>();
        column.add(new ExprNodeColumnDesc(TypeInfoFactory.intTypeInfo, "c", "t", false));
        ExprNodeGenericFuncDesc filter = new ExprNodeGenericFuncDesc(TypeInfoFactory.booleanTypeInfo, new GenericUDFOPNull(), column);
        job.set(TableScanDesc.FILTER_EXPR_CONF_STR, SerializationUtilities.serializeExpression(filter));
        job.set("mapreduce.input.pathFilter.class", SkippablePaths.class.getName());
    }

    private static Set<String> names(FileStatus[] files)
    {
        Set<String> names = new TreeSet<>();
        for (FileStatus file : files) {
            names.add(file.getPath().toString());
        }
        return names;
    }

    private static class Listing
            extends TextInputFormat
    {
        @Override
        public FileStatus[] listStatus(JobConf job)
                throws IOException
        {
            return super.listStatus(job);
        }
    }

    /** Files that the planner knows, some of them in another state, and names that are no files. */
    private class Answer
    {
        private final List<String> paths = new ArrayList<>();
        private final List<Long> sizes = new ArrayList<>();
        private final List<Long> times = new ArrayList<>();

        Answer(List<java.nio.file.Path> files, List<java.nio.file.Path> directories)
                throws IOException
        {
            for (java.nio.file.Path file : files) {
                int what = random.nextInt(8);
                if (what < 5) {
                    add(file, Files.size(file) + (what == 3 ? 1 : 0), Files.getLastModifiedTime(file).toMillis() + (what == 4 ? 1 : 0));
                }
            }
            for (java.nio.file.Path directory : directories) {
                if (random.nextInt(3) == 0) {
                    add(directory, Files.size(directory), Files.getLastModifiedTime(directory).toMillis());
                    add(directory.resolve("gone"), 1, NOW);
                }
            }
        }

        private void add(java.nio.file.Path path, long size, long time)
        {
            paths.add("file://" + path);
            sizes.add(size);
            times.add(time);
        }

        boolean names(FileStatus file)
        {
            int at = paths.indexOf("file://" + file.getPath().toUri().getPath());
            return at >= 0 && sizes.get(at) == file.getLen() && times.get(at) == file.getModificationTime();
        }

        byte[] frame()
                throws IOException
        {
            byte[] text = String.join("", paths).getBytes(StandardCharsets.UTF_8);
            ByteBuffer packed = ByteBuffer.allocate(20 * paths.size() + 4 + text.length).order(ByteOrder.LITTLE_ENDIAN);
            sizes.forEach(packed::putLong);
            times.forEach(packed::putLong);
            int end = 0;
            packed.putInt(end);
            for (String path : paths) {
                end += path.getBytes(StandardCharsets.UTF_8).length;
                packed.putInt(end);
            }
            packed.put(text);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            field(out, Planner.I32, 1).writeInt(2);
            field(out, Planner.I64, 2).writeLong(7);
            field(out, Planner.I64, 5).writeLong(paths.size());
            field(out, Planner.STRING, 7).writeInt(packed.capacity());
            out.write(packed.array());
            out.writeByte(0);
            return bytes.toByteArray();
        }
    }

    private static DataOutputStream field(DataOutputStream out, byte type, int id)
            throws IOException
    {
        out.writeByte(type);
        out.writeShort(id);
        return out;
    }

    /** Gives one answer to every call, or none. */
    private static final class Planner
            implements AutoCloseable
    {
        static final byte I32 = 8;
        static final byte I64 = 10;
        static final byte STRING = 11;
        private static final byte STRUCT = 12;
        private static final int VERSION_1 = 0x80010000;
        private static final int REPLY = 2;

        private final ServerSocket server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        private final byte[] answer;
        private final boolean dies;

        Planner(byte[] answer, boolean dies)
                throws IOException
        {
            this.answer = answer;
            this.dies = dies;
            Thread thread = new Thread(this::serve, "planner");
            thread.setDaemon(true);
            thread.start();
        }

        int port()
        {
            return server.getLocalPort();
        }

        private void serve()
        {
            while (!server.isClosed()) {
                try (Socket socket = server.accept()) {
                    DataInputStream in = new DataInputStream(socket.getInputStream());
                    byte[] call = new byte[in.readInt()];
                    in.readFully(call);
                    if (!dies) {
                        answer(ByteBuffer.wrap(call), socket);
                    }
                }
                catch (IOException e) {
                    // the test has ended
                }
            }
        }

        private void answer(ByteBuffer call, Socket socket)
                throws IOException
        {
            call.getInt();
            byte[] method = new byte[call.getInt()];
            call.get(method);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(VERSION_1 | REPLY);
            out.writeInt(method.length);
            out.write(method);
            out.writeInt(call.getInt());
            field(out, STRUCT, 0).write(answer);
            out.writeByte(0);
            DataOutputStream frame = new DataOutputStream(socket.getOutputStream());
            frame.writeInt(bytes.size());
            bytes.writeTo(frame);
            frame.flush();
        }

        @Override
        public void close()
                throws IOException
        {
            server.close();
        }
    }
}
