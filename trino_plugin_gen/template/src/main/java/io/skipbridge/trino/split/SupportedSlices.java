package io.skipbridge.trino.split;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;

import java.util.List;
import java.util.Set;

/** Refuses by name what this connector cannot read, before a split of it is given out. Nothing of a slice is ever ignored. */
final class SupportedSlices
{
    private static final Set<String> FORMATS = Set.of("parquet");

    private SupportedSlices() {}

    static void check(SplitColumns columns)
    {
        for (int file = 0; file < columns.files(); file++) {
            ReaderSpec reader = columns.reader(file);
            if (!FORMATS.contains(reader.format())) {
                throw new TrinoException(
                        BridgeErrorCode.UNSUPPORTED_FORMAT,
                        "File %s has the format %s; this connector reads %s".formatted(columns.pathText(file), reader.format(), String.join(", ", FORMATS)));
            }
            List<LogFile> logs = columns.logs(file);
            if (!logs.isEmpty() || columns.size(file) < 0) {
                throw new TrinoException(
                        BridgeErrorCode.MERGE_ON_READ,
                        "File slice %s has %d logs to merge, such as %s, and this connector merges none. Read the table once it is compacted, or with Hive or Spark"
                                .formatted(columns.pathText(file), logs.size(), logs.isEmpty() ? "none" : logs.getFirst().path()));
            }
        }
    }
}
