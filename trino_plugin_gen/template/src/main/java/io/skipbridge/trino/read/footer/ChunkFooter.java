package io.skipbridge.trino.read.footer;

import io.trino.parquet.metadata.ColumnChunkMetadata;
import io.trino.parquet.metadata.IndexReference;
import io.trino.parquet.reader.MetadataReader;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.EncodingStats;
import org.apache.parquet.format.CompressionCodec;
import org.apache.parquet.format.Statistics;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.schema.PrimitiveType;

import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;

/** A column chunk's entry in a footer, as far as a read needs it. */
public final class ChunkFooter
{
    public static final int SMALL = 16 << 10;
    private static final Encoding[] ENCODINGS = encodings();

    private boolean present;
    private int codec;
    private long values;
    private long compressed;
    private long uncompressed;
    private long dataPage;
    private long dictionaryPage;
    private long offsetIndex = -1;
    private int offsetIndexLength;
    private long columnIndex = -1;
    private int columnIndexLength;
    private boolean encrypted;
    private Set<Encoding> encodings = Set.of();
    private EncodingStats encodingStats;
    private Statistics statistics;

    /**
     * Reads a ColumnChunk struct. Bounds are read only for a column with a predicate. The null count and the encodings of pages are read for
     * each chunk that is not rewritten: without them the reader decodes definition levels and expands dictionaries, which makes grouping by a
     * text several times slower.
     */
    void read(CompactReader reader, boolean filtered)
    {
        int outer = reader.enter();
        for (int field = reader.next(); field != 0; field = reader.next()) {
            switch (field) {
                case 3 -> readMetadata(reader, filtered);
                case 4 -> offsetIndex = reader.i64();
                case 5 -> offsetIndexLength = reader.i32();
                case 6 -> columnIndex = reader.i64();
                case 7 -> columnIndexLength = reader.i32();
                case 8 -> {
                    encrypted = true;
                    reader.skip();
                }
                default -> reader.skip();
            }
        }
        reader.leave(outer);
    }

    private void readMetadata(CompactReader reader, boolean filtered)
    {
        present = true;
        int outer = reader.enter();
        for (int field = reader.next(); field != 0; field = reader.next()) {
            switch (field) {
                case 2 -> readEncodings(reader);
                case 4 -> codec = reader.i32();
                case 5 -> values = reader.i64();
                case 6 -> uncompressed = reader.i64();
                case 7 -> compressed = reader.i64();
                case 9 -> dataPage = reader.i64();
                case 11 -> dictionaryPage = reader.i64();
                case 12 -> {
                    if (filtered || !inflatable()) {
                        readStatistics(reader, filtered);
                    }
                    else {
                        reader.skip();
                    }
                }
                case 13 -> {
                    if (filtered || !inflatable()) {
                        readEncodingStats(reader);
                    }
                    else {
                        reader.skip();
                    }
                }
                default -> reader.skip();
            }
        }
        reader.leave(outer);
    }

    private void readEncodings(CompactReader reader)
    {
        int size = reader.list();
        encodings = EnumSet.noneOf(Encoding.class);
        for (int i = 0; i < size; i++) {
            encodings.add(encoding(reader.i32()));
        }
    }

    private void readStatistics(CompactReader reader, boolean bounds)
    {
        statistics = new Statistics();
        int outer = reader.enter();
        for (int field = reader.next(); field != 0; field = reader.next()) {
            if (field != 3 && !bounds) {
                reader.skip();
                continue;
            }
            switch (field) {
                case 1 -> statistics.setMax(reader.binary());
                case 2 -> statistics.setMin(reader.binary());
                case 3 -> statistics.setNull_count(reader.i64());
                case 4 -> statistics.setDistinct_count(reader.i64());
                case 5 -> statistics.setMax_value(reader.binary());
                case 6 -> statistics.setMin_value(reader.binary());
                case 7 -> statistics.setIs_max_value_exact(reader.bool());
                case 8 -> statistics.setIs_min_value_exact(reader.bool());
                default -> reader.skip();
            }
        }
        reader.leave(outer);
    }

    private void readEncodingStats(CompactReader reader)
    {
        EncodingStats.Builder builder = new EncodingStats.Builder();
        int size = reader.list();
        for (int i = 0; i < size; i++) {
            int[] values = new int[4];
            int outer = reader.enter();
            for (int field = reader.next(); field != 0; field = reader.next()) {
                if (field < values.length) {
                    values[field] = reader.i32();
                }
                else {
                    reader.skip();
                }
            }
            reader.leave(outer);
            switch (values[1]) {
                case 0 -> builder.addDataEncoding(encoding(values[2]), values[3]);
                case 2 -> builder.addDictEncoding(encoding(values[2]), values[3]);
                case 3 -> builder.withV2Pages().addDataEncoding(encoding(values[2]), values[3]);
                default -> {}
            }
        }
        encodingStats = builder.build();
    }

    /** Whether the footer describes the chunk and its pages are not encrypted. */
    boolean readable()
    {
        return present && !encrypted;
    }

    public boolean hasOffsetIndex()
    {
        return offsetIndex >= 0 && offsetIndexLength > 0;
    }

    /** The codec's name, if the reader does not know the codec. */
    public Optional<String> unknownCodec()
    {
        CompressionCodec known = CompressionCodec.findByValue(codec);
        if (known == null) {
            return Optional.of("codec " + codec);
        }
        return known == CompressionCodec.LZ4_RAW || known == CompressionCodec.BROTLI ? Optional.of(known.name()) : Optional.empty();
    }

    /** Whether the chunk is rewritten without compression before it is read. */
    public boolean inflatable()
    {
        return codec == CompressionCodec.ZSTD.getValue() && small();
    }

    /** Whether decoding the whole chunk takes less time than reading its page index. */
    public boolean small()
    {
        return uncompressed <= SMALL;
    }

    public long compressed()
    {
        return compressed;
    }

    long uncompressed()
    {
        return uncompressed;
    }

    /** Metadata of the rewritten chunk, which starts at {@code base}. Statistics and page indexes are left out: they describe the original bytes. */
    public ColumnChunkMetadata inflated(ColumnDescriptor descriptor, long base, int firstPage, int length)
    {
        boolean dictionary = dictionaryPage > 0 && dictionaryPage < dataPage;
        return ColumnChunkMetadata.get(
                ColumnPath.get(descriptor.getPath()),
                descriptor.getPrimitiveType(),
                CompressionCodecName.UNCOMPRESSED,
                null,
                encodings,
                null,
                dictionary ? base + firstPage : base,
                dictionary ? base : 0,
                values,
                length,
                length);
    }

    public long startingPosition()
    {
        return dictionaryPage > 0 && dictionaryPage < dataPage ? dictionaryPage : dataPage;
    }

    /**
     * Metadata of the chunk for the reader, with its pages and page indexes moved by {@code base}. The offsets inside an offset index are not
     * moved; {@code PageIndex} does that. Statistics are left out as far as the footer's writer is not believed.
     */
    public ColumnChunkMetadata metadata(ColumnDescriptor descriptor, Footer footer, long base)
    {
        PrimitiveType type = descriptor.getPrimitiveType();
        Optional<Statistics> believed = Optional.ofNullable(statistics).map(stated -> footer.doubts().believed(stated, type));
        ColumnChunkMetadata metadata = ColumnChunkMetadata.get(
                ColumnPath.get(descriptor.getPath()),
                type,
                CompressionCodecName.fromParquet(CompressionCodec.findByValue(codec)),
                encodingStats,
                encodings,
                MetadataReader.readStats(footer.createdBy(), believed, type),
                dataPage + base,
                dictionaryPage > 0 ? dictionaryPage + base : 0,
                values,
                compressed,
                uncompressed);
        if (columnIndex >= 0 && columnIndexLength > 0) {
            metadata.setColumnIndexReference(new IndexReference(columnIndex + base, columnIndexLength));
        }
        if (hasOffsetIndex()) {
            metadata.setOffsetIndexReference(new IndexReference(offsetIndex + base, offsetIndexLength));
        }
        return metadata;
    }

    private static Encoding encoding(int value)
    {
        if (value < 0 || value >= ENCODINGS.length || ENCODINGS[value] == null) {
            throw new IndexOutOfBoundsException("unknown encoding " + value);
        }
        return ENCODINGS[value];
    }

    private static Encoding[] encodings()
    {
        Encoding[] byValue = new Encoding[16];
        for (org.apache.parquet.format.Encoding format : org.apache.parquet.format.Encoding.values()) {
            byValue[format.getValue()] = Encoding.valueOf(format.name());
        }
        return byValue;
    }
}
