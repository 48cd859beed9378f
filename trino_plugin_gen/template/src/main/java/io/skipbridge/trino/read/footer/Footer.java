package io.skipbridge.trino.read.footer;

import io.trino.parquet.ParquetCorruptionException;
import io.trino.parquet.ParquetDataSourceId;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** A footer's row groups, with the chunks of the columns that a scan reads, and what is not believed of its writer. */
public record Footer(List<RowGroupFooter> rowGroups, Optional<String> createdBy, WriterDoubts doubts)
{
    public static Footer read(FooterBytes bytes, ReadSchema schema, ParquetDataSourceId id)
            throws IOException
    {
        CompactReader reader = bytes.reader();
        int schemaField = 2;
        reader.resume(bytes.start() + schema.file().prefix().length, schemaField);
        List<RowGroupFooter> groups = new ArrayList<>();
        Optional<String> createdBy = Optional.empty();
        try {
            for (int field = reader.next(); field != 0; field = reader.next()) {
                switch (field) {
                    case 4 -> {
                        int size = reader.list();
                        for (int i = 0; i < size; i++) {
                            groups.add(rowGroup(reader, schema, id));
                        }
                    }
                    case 6 -> createdBy = Optional.of(new String(reader.binary(), StandardCharsets.UTF_8));
                    default -> reader.skip();
                }
            }
        }
        catch (IndexOutOfBoundsException e) {
            throw new ParquetCorruptionException(e, id, "its footer cannot be read");
        }
        return new Footer(groups, createdBy, WriterDoubts.of(createdBy));
    }

    private static RowGroupFooter rowGroup(CompactReader reader, ReadSchema schema, ParquetDataSourceId id)
            throws IOException
    {
        long rows = 0;
        long start = 0;
        ChunkFooter[] chunks = new ChunkFooter[schema.leaves().length];
        int outer = reader.enter();
        for (int field = reader.next(); field != 0; field = reader.next()) {
            switch (field) {
                case 1 -> start = columns(reader, schema, chunks, id);
                case 3 -> rows = reader.i64();
                default -> reader.skip();
            }
        }
        reader.leave(outer);
        for (ChunkFooter chunk : chunks) {
            if (chunk == null || !chunk.readable()) {
                throw new ParquetCorruptionException(id, "a column chunk is missing or encrypted");
            }
        }
        return new RowGroupFooter(rows, start, chunks);
    }

    /** Reads the chunks that the schema needs, and the first one for the start of the row group. */
    private static long columns(CompactReader reader, ReadSchema schema, ChunkFooter[] chunks, ParquetDataSourceId id)
            throws IOException
    {
        int size = reader.list();
        if (size != schema.file().leaves().size()) {
            throw new ParquetCorruptionException(id, "row group of %s columns where the schema has %s", size, schema.file().leaves().size());
        }
        long start = 0;
        int next = 0;
        for (int ordinal = 0; ordinal < size; ordinal++) {
            boolean wanted = next < chunks.length && schema.leaves()[next] == ordinal;
            if (wanted || ordinal == 0) {
                ChunkFooter chunk = new ChunkFooter();
                chunk.read(reader, wanted && schema.filtered(next));
                if (ordinal == 0) {
                    start = chunk.startingPosition();
                }
                if (wanted) {
                    chunks[next++] = chunk;
                }
            }
            else {
                reader.skipStruct();
            }
        }
        return start;
    }
}
