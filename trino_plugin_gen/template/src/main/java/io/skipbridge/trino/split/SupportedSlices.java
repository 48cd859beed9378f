package io.skipbridge.trino.split;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;

import java.util.List;

/** Refuses by name slices that this connector cannot read, before they become splits. No part of a slice is ever ignored. */
final class SupportedSlices
{
    private SupportedSlices() {}

    static void check(SplitColumns columns)
    {
        for (int file = 0; file < columns.files(); file++) {
            ReaderSpec reader = columns.reader(file);
            if (FileFormat.find(reader.format()).isEmpty()) {
                throw FileFormat.unsupported(columns.pathText(file), reader.format());
            }
            List<LogFile> logs = columns.logs(file);
            boolean byId = reader.format().equals(FileFormat.HUDI_BY_ID.wireName());
            boolean merges = reader.format().equals(FileFormat.HUDI.wireName()) || (byId && !logs.isEmpty());
            if (merges == logs.isEmpty() || (!merges && columns.size(file) < 0)) {
                throw new TrinoException(
                        BridgeErrorCode.MERGE_ON_READ,
                        "File slice %s of the format %s has %d logs to merge, such as %s, and this connector merges only logs of Hudi. Read the table once it is compacted, or with Hive or Spark"
                                .formatted(columns.pathText(file), reader.format(), logs.size(), logs.isEmpty() ? "none" : logs.getFirst().path()));
            }
        }
    }
}
