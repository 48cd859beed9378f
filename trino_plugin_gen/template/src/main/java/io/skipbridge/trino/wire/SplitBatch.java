package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;

/** One reply to {@code next_splits}. bridge.thrift describes the layout of the payload; {@code SplitColumns} reads it. */
public record SplitBatch(
        long nextToken,
        boolean finished,
        int splitCount,
        int fileCount,
        List<PartitionEntry> partitions,
        ByteBuffer payload,
        Optional<String> report,
        List<ReaderSpec> readers,
        int logCount,
        ByteBuffer etagHashes)
{
    static SplitBatch read(BinaryReader reader)
    {
        long nextToken = -1;
        boolean finished = false;
        int splitCount = 0;
        int fileCount = 0;
        List<PartitionEntry> partitions = List.of();
        ByteBuffer payload = ByteBuffer.allocate(0);
        Optional<String> report = Optional.empty();
        List<ReaderSpec> readers = List.of();
        int logCount = 0;
        ByteBuffer etagHashes = ByteBuffer.allocate(0);
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            switch (id) {
                case 1 -> nextToken = reader.is(WireType.I64) ? reader.i64() : nextToken;
                case 2 -> finished = reader.is(WireType.BOOL) ? reader.bool() : finished;
                case 3 -> splitCount = reader.is(WireType.I32) ? reader.i32() : splitCount;
                case 4 -> fileCount = reader.is(WireType.I32) ? reader.i32() : fileCount;
                case 5 -> partitions = reader.is(WireType.LIST) ? reader.structs(PartitionEntry::read) : partitions;
                case 6 -> payload = reader.is(WireType.STRING) ? reader.binary() : payload;
                case 7 -> report = reader.is(WireType.STRING) ? Optional.of(reader.string()) : report;
                case 8 -> readers = reader.is(WireType.LIST) ? reader.structs(ReaderSpec::read) : readers;
                case 9 -> logCount = reader.is(WireType.I32) ? reader.i32() : logCount;
                case 10 -> etagHashes = reader.is(WireType.STRING) ? reader.binary() : etagHashes;
                default -> reader.skip();
            }
        }
        return new SplitBatch(nextToken, finished, splitCount, fileCount, partitions, payload, report, readers, logCount, etagHashes);
    }
}
