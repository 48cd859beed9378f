package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.MergedPages;
import io.skipbridge.trino.read.merge.SliceRequest;
import io.trino.spi.Page;
import io.trino.spi.classloader.ThreadContextClassLoader;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.common.table.read.HoodieFileGroupReader;
import org.apache.hudi.common.util.collection.ClosableIterator;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** The merged rows of a slice. Rows that the logs do not change keep the values that were read of the base file. */
final class MergedSlice
        implements MergedPages
{
    private static final int PAGE_ROWS = 4_096;

    private final HoodieFileGroupReader<IndexedRecord> reader;
    private final LogRecords logRecords;
    private final LogStorage logs;
    private final SpillDirectory spill;
    private final RowWriter writer;
    private ClosableIterator<IndexedRecord> records;

    MergedSlice(
            HoodieFileGroupReader<IndexedRecord> reader,
            LogRecords logRecords,
            LogStorage logs,
            SpillDirectory spill,
            List<SliceRequest.Column> columns)
    {
        this.reader = reader;
        this.logRecords = logRecords;
        this.logs = logs;
        this.spill = spill;
        this.writer = new RowWriter(columns);
    }

    @Override
    public Page next()
            throws IOException
    {
        try (ThreadContextClassLoader _ = new ThreadContextClassLoader(MergedSlice.class.getClassLoader())) {
            if (records == null) {
                records = reader.getClosableIterator();
                logs.forget();
            }
            List<IndexedRecord> rows = new ArrayList<>();
            while (rows.size() < PAGE_ROWS && records.hasNext()) {
                rows.add(records.next());
            }
            return rows.isEmpty() ? null : writer.write(rows);
        }
    }

    @Override
    public long memoryBytes()
    {
        return logRecords.memoryBytes() + logs.bytes();
    }

    @Override
    public void close()
            throws IOException
    {
        try {
            if (records == null) {
                reader.close();
            }
            else {
                records.close();
            }
        }
        finally {
            spill.close();
        }
    }
}
