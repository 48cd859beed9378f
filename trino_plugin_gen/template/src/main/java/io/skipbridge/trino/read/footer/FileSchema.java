package io.skipbridge.trino.read.footer;

import io.trino.parquet.ParquetCorruptionException;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.spi.TrinoException;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.SchemaElement;
import org.apache.parquet.format.Util;
import org.apache.parquet.schema.MessageType;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/**
 * A file's schema, with the footer bytes that encode it. Footers of one writer start with the same bytes, so that comparing them saves
 * decoding.
 *
 * <p>Top-level names are in lower case, as in Trino's reader. Of columns that differ only in case, the one in lower case keeps its name and the
 * others are renamed, so that no query reaches them. Without one in lower case the name is ambiguous.
 */
record FileSchema(byte[] prefix, String times, MessageType message, List<ColumnDescriptor> leaves, Set<String> ambiguous, Set<String> unsure)
{
    /** @param times what {@link FileTimes} is told of the file */
    static FileSchema read(FooterBytes footer, String times, ParquetDataSourceId id)
            throws IOException
    {
        CompactReader reader = footer.reader();
        int schemaField = 2;
        for (int field = reader.next(); field != 0; field = reader.next()) {
            reader.skip();
            if (field == schemaField) {
                break;
            }
        }
        byte[] prefix = Arrays.copyOfRange(footer.bytes(), footer.start(), reader.position());
        try {
            FileMetaData metadata = Util.readFileMetaData(new ByteArrayInputStream(footer.bytes(), footer.start(), footer.end() - footer.start()));
            Set<String> unsure = FileTimes.repair(metadata.getSchema(), times);
            hideTypeless(metadata.getSchema());
            Set<String> ambiguous = separateCases(metadata.getSchema());
            MessageType message = NativeSchema.read(metadata, id);
            return new FileSchema(prefix, times, message, message.getColumns(), ambiguous, unsure);
        }
        catch (TrinoException e) {
            throw e;
        }
        catch (IOException | RuntimeException e) {
            throw new ParquetCorruptionException(e, id, "its schema cannot be read: %s", e.getMessage());
        }
    }

    boolean begins(FooterBytes footer)
    {
        int length = Math.min(prefix.length, footer.end() - footer.start());
        return Arrays.equals(prefix, 0, prefix.length, footer.bytes(), footer.start(), footer.start() + length);
    }

    /** A column of Parquet's null type holds nothing: no query reaches it, so that it is NULL under every type of the table. */
    private static void hideTypeless(List<SchemaElement> schema)
    {
        forEachColumn(schema, element -> {
            if (element.isSetLogicalType() && element.getLogicalType().isSetUNKNOWN()) {
                element.setName(element.getName().toLowerCase(Locale.ENGLISH) + "\u0000");
            }
        });
    }

    private static Set<String> separateCases(List<SchemaElement> schema)
    {
        Map<String, Integer> spellings = new HashMap<>();
        Map<String, Boolean> exact = new HashMap<>();
        forEachColumn(schema, element -> {
            String lower = element.getName().toLowerCase(Locale.ENGLISH);
            spellings.merge(lower, 1, Integer::sum);
            exact.merge(lower, element.getName().equals(lower), Boolean::logicalOr);
        });
        Set<String> ambiguous = new HashSet<>();
        int[] ordinal = {0};
        forEachColumn(schema, element -> {
            ordinal[0]++;
            String lower = element.getName().toLowerCase(Locale.ENGLISH);
            if (spellings.get(lower) > 1 && !(exact.get(lower) && element.getName().equals(lower))) {
                element.setName(lower + "\u0000" + ordinal[0]);
                if (!exact.get(lower)) {
                    ambiguous.add(lower);
                }
            }
        });
        return ambiguous;
    }

    private static void forEachColumn(List<SchemaElement> schema, Consumer<SchemaElement> action)
    {
        int position = 1;
        while (position < schema.size()) {
            action.accept(schema.get(position));
            int pending = 1;
            while (pending > 0 && position < schema.size()) {
                pending += schema.get(position++).getNum_children() - 1;
            }
        }
    }
}
