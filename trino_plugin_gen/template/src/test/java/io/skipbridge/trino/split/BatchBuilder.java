package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.skipbridge.trino.wire.SplitBatch;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Packs splits the way the planner does. */
final class BatchBuilder
{
    private final List<Integer> firstFiles = new ArrayList<>(List.of(0));
    private final List<PlannedFile> files = new ArrayList<>();
    private final List<PartitionEntry> partitions = new ArrayList<>();
    private final List<ReaderSpec> readers = new ArrayList<>();

    BatchBuilder split(PlannedFile... planned)
    {
        for (PlannedFile file : planned) {
            if (!partitions.contains(file.partition())) {
                partitions.add(file.partition());
            }
            if (!readers.contains(file.reader())) {
                readers.add(file.reader());
            }
            files.add(file);
        }
        firstFiles.add(files.size());
        return this;
    }

    SplitBatch build()
    {
        int splits = firstFiles.size() - 1;
        List<LogFile> logs = files.stream().flatMap(file -> file.logs().stream()).toList();
        int pathBytes = files.stream().mapToInt(file -> bytes(file.path()).length).sum() + logs.stream().mapToInt(log -> bytes(log.path()).length).sum();
        int logBytes = logs.isEmpty() ? 0 : 4 * (files.size() + 1) + 16 * logs.size() + 4 * (logs.size() + 1);
        ByteBuffer payload = ByteBuffer.allocate(4 * (splits + 1) + 4 * splits + 40 * files.size() + 4 * (files.size() + 1) + logBytes + pathBytes).order(ByteOrder.LITTLE_ENDIAN);
        firstFiles.forEach(payload::putInt);
        for (int i = 0; i < splits; i++) {
            payload.putInt(500 + i);
        }
        files.forEach(file -> payload.putLong(file.start()));
        files.forEach(file -> payload.putLong(file.length()));
        files.forEach(file -> payload.putLong(file.size()));
        files.forEach(file -> payload.putLong(file.modifiedMillis()));
        files.forEach(file -> payload.putInt(partitions.indexOf(file.partition())));
        files.forEach(file -> payload.putInt(readers.indexOf(file.reader())));
        paths(payload, files.stream().map(PlannedFile::path).toList());
        if (!logs.isEmpty()) {
            int first = 0;
            payload.putInt(first);
            for (PlannedFile file : files) {
                first += file.logs().size();
                payload.putInt(first);
            }
            logs.forEach(log -> payload.putLong(log.size()));
            logs.forEach(log -> payload.putLong(log.modifiedMillis()));
            paths(payload, logs.stream().map(LogFile::path).toList());
        }
        return new SplitBatch(1, false, splits, files.size(), List.copyOf(partitions), payload.flip(), Optional.empty(), List.copyOf(readers), logs.size(), etags());
    }

    private ByteBuffer etags()
    {
        if (files.stream().allMatch(file -> file.etagHash() == 0)) {
            return ByteBuffer.allocate(0);
        }
        ByteBuffer hashes = ByteBuffer.allocate(4 * files.size()).order(ByteOrder.LITTLE_ENDIAN);
        files.forEach(file -> hashes.putInt(file.etagHash()));
        return hashes.flip();
    }

    private static void paths(ByteBuffer payload, List<String> paths)
    {
        int offset = 0;
        payload.putInt(offset);
        for (String path : paths) {
            offset += bytes(path).length;
            payload.putInt(offset);
        }
        paths.forEach(path -> payload.put(bytes(path)));
    }

    private static byte[] bytes(String path)
    {
        return path.getBytes(StandardCharsets.UTF_8);
    }
}
