package io.skipbridge.trino.read.text;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.OpenFile;
import io.skipbridge.trino.read.file.RowFormat;
import io.skipbridge.trino.read.storage.PlannedInputFile;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.hive.formats.encodings.ColumnEncodingFactory;
import io.trino.hive.formats.encodings.binary.BinaryColumnEncodingFactory;
import io.trino.hive.formats.encodings.text.TextColumnEncodingFactory;
import io.trino.hive.formats.encodings.text.TextEncodingOptions;
import io.trino.hive.formats.line.Column;
import io.trino.hive.formats.rcfile.RcFileReader;
import io.trino.spi.Page;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.RunLengthEncodedBlock;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeManager;
import org.joda.time.DateTimeZone;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** RCFile by Trino's own reader: binary or text, as the SerDe says. */
public final class RcFormat
        implements RowFormat
{
    private static final String BINARY = "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe";
    private static final String TEXT = "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe";

    private final DateTimeZone timeZone;
    private final TypeManager types;

    /** @param timeZone of timestamps in binary files */
    public RcFormat(DateTimeZone timeZone, TypeManager types)
    {
        this.timeZone = timeZone;
        this.types = types;
    }

    @Override
    public String spelled()
    {
        return "RCFile";
    }

    @Override
    public AheadRange ahead()
    {
        return AheadRange.begin(AheadRange.SMALL_FILE, 1 << 20);
    }

    @Override
    public FileReader open(FileScan scan, OpenFile file, TupleDomain<BridgeColumnHandle> predicate)
            throws IOException
    {
        PlannedFile planned = file.planned();
        FileColumns columns = FileColumns.of(scan.dataColumns(), planned, false, types);
        long length = Math.min(planned.size() - planned.start(), planned.length());
        if (length <= 0) {
            return () -> null;
        }
        Map<Integer, Type> read = new HashMap<>();
        columns.columns().forEach(column -> read.put(column.ordinal(), column.type()));
        RcFileReader reader = new RcFileReader(
                new PlannedInputFile(planned.path(), file.bytes()),
                encodings(planned),
                read,
                planned.start(),
                length);
        return new Reader(reader, columns);
    }

    private ColumnEncodingFactory encodings(PlannedFile planned)
    {
        Map<String, String> properties = planned.reader().properties();
        return switch (properties.getOrDefault("serialization.lib", "")) {
            case BINARY -> new BinaryColumnEncodingFactory(timeZone);
            case TEXT -> new TextColumnEncodingFactory(TextEncodingOptions.fromSchema(properties));
            case String serde -> throw new TrinoException(BridgeErrorCode.UNSUPPORTED_FORMAT, "%s is of the SerDe '%s', which Trino has no reader for".formatted(planned.path(), serde));
        };
    }

    @Override
    public boolean damaged(IOException problem)
    {
        return true;
    }

    private record Reader(RcFileReader reader, FileColumns columns)
            implements FileReader
    {
        @Override
        public SourcePage next()
                throws IOException
        {
            int rows = reader.advance();
            if (rows < 0) {
                return null;
            }
            List<Column> wanted = columns.columns();
            Block[] blocks = new Block[wanted.size()];
            for (int i = 0; i < blocks.length; i++) {
                Column column = wanted.get(i);
                blocks[i] = column.ordinal() < reader.getColumnCount()
                        ? reader.readBlock(column.ordinal())
                        : RunLengthEncodedBlock.create(column.type(), null, rows);
            }
            return SourcePage.create(new Page(rows, columns.converted(blocks)));
        }

        @Override
        public void close()
                throws IOException
        {
            reader.close();
        }
    }
}
