package io.skipbridge.trino.read;

import io.trino.parquet.AbstractParquetDataSource;
import io.trino.parquet.Column;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.parquet.ParquetReaderOptions;
import io.trino.parquet.ParquetTypeUtils;
import io.trino.parquet.metadata.BlockMetadata;
import io.trino.parquet.metadata.ParquetMetadata;
import io.trino.parquet.metadata.PrunedBlockMetadata;
import io.trino.parquet.reader.MetadataReader;
import io.trino.parquet.reader.ParquetReader;
import io.trino.parquet.reader.RowGroupInfo;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.io.MessageColumnIO;
import org.apache.parquet.schema.MessageType;
import org.joda.time.DateTimeZone;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

import static io.trino.memory.context.AggregatedMemoryContext.newSimpleAggregatedMemoryContext;

/**
 * The floor of a full scan: Trino's ParquetReader over all files of a directory, two threads, no engine around it. Each file is read whole, its
 * footer by Trino's own reader, and three columns decoded to blocks; prints rows and seconds, run by run.
 */
public final class ScanFloor
{
    private static final ParquetReaderOptions OPTIONS = ParquetReaderOptions.defaultOptions();
    private static final Map<String, Type> COLUMNS = new LinkedHashMap<>();

    static {
        COLUMNS.put("l_returnflag", VarcharType.VARCHAR);
        COLUMNS.put("l_linestatus", VarcharType.VARCHAR);
        COLUMNS.put("l_quantity", DecimalType.createDecimalType(15, 2));
    }

    private ScanFloor() {}

    public static void main(String[] arguments)
            throws Exception
    {
        List<Path> files;
        try (var listed = Files.list(Path.of(arguments[0]))) {
            files = listed.filter(path -> path.toString().endsWith(".parquet")).sorted().toList();
        }
        int threads = 2;
        try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
            for (int run = 0; run < Integer.parseInt(arguments[1]); run++) {
                long started = System.nanoTime();
                AtomicInteger next = new AtomicInteger();
                List<Callable<Long>> work = new ArrayList<>();
                for (int i = 0; i < threads; i++) {
                    work.add(() -> {
                        long rows = 0;
                        for (int file = next.getAndIncrement(); file < files.size(); file = next.getAndIncrement()) {
                            rows += read(files.get(file));
                        }
                        return rows;
                    });
                }
                long rows = 0;
                for (Future<Long> done : pool.invokeAll(work)) {
                    rows += done.get();
                }
                System.out.println(rows + " " + (System.nanoTime() - started) / 1e9);
            }
        }
    }

    private static long read(Path path)
            throws IOException
    {
        Whole source = new Whole(new ParquetDataSourceId(path.toString()), Files.readAllBytes(path));
        ParquetMetadata metadata = MetadataReader.readFooter(source, Optional.empty());
        MessageType schema = metadata.getFileMetaData().getSchema();
        MessageType requested = new MessageType(schema.getName(), COLUMNS.keySet().stream().map(schema::getType).toList());
        MessageColumnIO columnIo = ParquetTypeUtils.getColumnIO(schema, requested);
        Map<List<String>, ColumnDescriptor> descriptors = ParquetTypeUtils.getDescriptors(schema, requested);
        List<Column> columns = new ArrayList<>();
        COLUMNS.forEach((name, type) -> columns.add(
                new Column(name, ParquetTypeUtils.constructField(type, ParquetTypeUtils.lookupColumnByName(columnIo, name)).orElseThrow())));
        List<RowGroupInfo> rowGroups = new ArrayList<>();
        for (BlockMetadata block : metadata.getBlocks()) {
            rowGroups.add(new RowGroupInfo(
                    PrunedBlockMetadata.createPrunedColumnsMetadata(block, source.getId(), descriptors), block.fileRowCountOffset(), Optional.empty()));
        }
        long rows = 0;
        try (ParquetReader reader = new ParquetReader(
                Optional.ofNullable(metadata.getFileMetaData().getCreatedBy()),
                columns,
                false,
                rowGroups,
                source,
                DateTimeZone.UTC,
                newSimpleAggregatedMemoryContext(),
                OPTIONS,
                RuntimeException::new,
                Optional.empty(),
                Optional.empty())) {
            for (SourcePage page = reader.nextPage(); page != null; page = reader.nextPage()) {
                rows += page.getPage().getPositionCount();
            }
        }
        return rows;
    }

    private static final class Whole
            extends AbstractParquetDataSource
    {
        private final byte[] bytes;

        Whole(ParquetDataSourceId id, byte[] bytes)
        {
            super(id, bytes.length, OPTIONS);
            this.bytes = bytes;
        }

        @Override
        protected void readInternal(long position, byte[] buffer, int offset, int length)
        {
            System.arraycopy(bytes, (int) position, buffer, offset, length);
        }

        @Override
        public void close() {}
    }
}
