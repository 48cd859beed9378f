package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.PartitionEntry;
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

    BatchBuilder split(PlannedFile... planned)
    {
        for (PlannedFile file : planned) {
            if (!partitions.contains(file.partition())) {
                partitions.add(file.partition());
            }
            files.add(file);
        }
        firstFiles.add(files.size());
        return this;
    }

    SplitBatch build()
    {
        int splits = firstFiles.size() - 1;
        int pathBytes = files.stream().mapToInt(file -> path(file).length).sum();
        ByteBuffer payload = ByteBuffer.allocate(4 * (splits + 1) + 8 * splits + 36 * files.size() + 4 * (files.size() + 1) + pathBytes).order(ByteOrder.LITTLE_ENDIAN);
        firstFiles.forEach(payload::putInt);
        for (int i = 0; i < splits; i++) {
            payload.putInt(500 + i);
        }
        for (int i = 0; i < splits; i++) {
            payload.putInt(-1);
        }
        files.forEach(file -> payload.putLong(file.start()));
        files.forEach(file -> payload.putLong(file.length()));
        files.forEach(file -> payload.putLong(file.size()));
        files.forEach(file -> payload.putLong(file.modifiedMillis()));
        files.forEach(file -> payload.putInt(partitions.indexOf(file.partition())));
        int offset = 0;
        payload.putInt(offset);
        for (PlannedFile file : files) {
            offset += path(file).length;
            payload.putInt(offset);
        }
        files.forEach(file -> payload.put(path(file)));
        return new SplitBatch(1, false, splits, files.size(), List.copyOf(partitions), payload.flip(), Optional.empty());
    }

    private static byte[] path(PlannedFile file)
    {
        return file.path().getBytes(StandardCharsets.UTF_8);
    }
}
