package io.skipbridge.trino.read.footer;

import io.trino.parquet.ParquetReaderUtils;
import io.trino.parquet.metadata.ColumnChunkMetadata;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.ColumnMetaData;
import org.apache.parquet.format.CompressionCodec;
import org.apache.parquet.format.Encoding;
import org.apache.parquet.format.PageEncodingStats;
import org.apache.parquet.format.PageType;
import org.apache.parquet.format.Statistics;
import org.apache.parquet.format.Type;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Types;
import org.junit.jupiter.api.Test;
import shaded.parquet.org.apache.thrift.TException;
import shaded.parquet.org.apache.thrift.protocol.TCompactProtocol;
import shaded.parquet.org.apache.thrift.transport.TMemoryBuffer;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestChunkFooter
{
    private static final String WRITER = "parquet-cpp-arrow version 18.0.0";
    private static final PrimitiveType TEXT = Types.optional(PrimitiveType.PrimitiveTypeName.BINARY).named("mode");
    private static final ColumnDescriptor COLUMN = new ColumnDescriptor(new String[] {"mode"}, TEXT, 0, 1);

    @Test
    void largeChunkWithoutPredicateKeepsItsDictionary()
            throws TException
    {
        ColumnChunkMetadata metadata = read(1 << 20, false);
        assertTrue(ParquetReaderUtils.isOnlyDictionaryEncodingPages(metadata));
        assertEquals(0, metadata.getStatistics().getNumNulls());
        assertFalse(metadata.getStatistics().hasNonNullValue());
    }

    @Test
    void boundsAreReadForPredicates()
            throws TException
    {
        assertTrue(read(1 << 20, true).getStatistics().hasNonNullValue());
    }

    @Test
    void smallChunkIsReadWithoutStatistics()
            throws TException
    {
        assertNull(read(512, false).getEncodingStats());
    }

    private static ColumnChunkMetadata read(long uncompressed, boolean filtered)
            throws TException
    {
        Statistics statistics = new Statistics();
        statistics.setNull_count(0);
        statistics.setMin_value("AIR".getBytes(StandardCharsets.UTF_8));
        statistics.setMax_value("TRUCK".getBytes(StandardCharsets.UTF_8));
        ColumnMetaData data = new ColumnMetaData(
                Type.BYTE_ARRAY,
                List.of(Encoding.PLAIN, Encoding.RLE, Encoding.RLE_DICTIONARY),
                List.of("mode"),
                CompressionCodec.ZSTD,
                1_000,
                uncompressed,
                uncompressed / 2,
                200);
        data.setDictionary_page_offset(4);
        data.setStatistics(statistics);
        data.setEncoding_stats(List.of(
                new PageEncodingStats(PageType.DICTIONARY_PAGE, Encoding.PLAIN, 1),
                new PageEncodingStats(PageType.DATA_PAGE, Encoding.RLE_DICTIONARY, 7)));
        ColumnChunk chunk = new ColumnChunk(0);
        chunk.setMeta_data(data);
        TMemoryBuffer buffer = new TMemoryBuffer(256);
        chunk.write(new TCompactProtocol(buffer));
        ChunkFooter footer = new ChunkFooter();
        footer.read(new CompactReader(buffer.getArray(), 0, buffer.length()), filtered);
        return footer.metadata(COLUMN, new Footer(List.of(), Optional.of(WRITER), WriterDoubts.of(Optional.of(WRITER))), 0);
    }
}
