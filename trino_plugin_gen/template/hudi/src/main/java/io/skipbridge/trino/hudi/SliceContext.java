package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceFiles;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.avro.HoodieAvroReaderContext;
import org.apache.hudi.common.config.RecordMergeMode;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.read.BufferedRecord;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.SizeEstimator;
import org.apache.hudi.common.util.collection.ClosableIterator;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;
import org.apache.hudi.storage.inline.InLineFSUtils;

import java.io.IOException;

/** Gives Hudi's reader the rows of Parquet files as the plugin reads them: of the base file, and of blocks in logs. */
final class SliceContext
        extends HoodieAvroReaderContext
{
    private final SliceFiles files;
    private final LogStorage logs;
    private final RecordSizes sizes = new RecordSizes();

    SliceContext(PlannedTable table, LogStorage logs, SliceFiles files)
    {
        super(logs.getConf(), table.getTableConfig(), Option.empty(), Option.empty());
        this.files = files;
        this.logs = logs;
        this.recordContext = new RecordValues(table.getTableConfig(), table.schema().toAvroSchema(), () -> getMergeMode() == RecordMergeMode.EVENT_TIME_ORDERING);
    }

    RecordSizes sizes()
    {
        return sizes;
    }

    @Override
    public ClosableIterator<IndexedRecord> getFileRecordIterator(
            StoragePath path, long start, long length, HoodieSchema dataSchema, HoodieSchema requiredSchema, HoodieStorage storage)
            throws IOException
    {
        BaseColumns columns = new BaseColumns(requiredSchema.toAvroSchema());
        if (!InLineFSUtils.SCHEME.equals(path.toUri().getScheme())) {
            return new PageRecords(columns, files.readBase(columns.columns()));
        }
        int log = logs.log(InLineFSUtils.getOuterFilePathFromInlinePath(path)).log();
        return new PageRecords(
                columns,
                files.readInlineParquet(log, InLineFSUtils.startOffset(path), Math.toIntExact(InLineFSUtils.length(path)), columns.columns()));
    }

    @Override
    public ClosableIterator<IndexedRecord> getFileRecordIterator(
            StoragePathInfo path, long start, long length, HoodieSchema dataSchema, HoodieSchema requiredSchema, HoodieStorage storage)
            throws IOException
    {
        return getFileRecordIterator(path.getPath(), start, length, dataSchema, requiredSchema, storage);
    }

    @Override
    public SizeEstimator<BufferedRecord<IndexedRecord>> getRecordSizeEstimator()
    {
        return sizes;
    }
}
