package io.skipbridge.trino.read.footer;

import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.format.Statistics;
import org.apache.parquet.internal.column.columnindex.BoundaryOrder;
import org.apache.parquet.internal.column.columnindex.ColumnIndex;
import org.apache.parquet.internal.column.columnindex.ColumnIndexBuilder;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What of a footer is not believed, by its writer's name and version. Trino's reader takes the stated NULL counts for true: it skips row groups and pages
 * by them, and decodes no NULLs in a chunk that states none.
 *
 * @param words as the table {@code parquet-writers.txt} has them: {@code bounds} of all columns, of {@code text}, of {@code booleans}, and of decimals in
 *         byte arrays of {@code fixed} and {@code varying} length; all NULL {@code counts}, or {@code some}: those above zero; and all of {@code coded}
 *         text. Which columns were dictionaries in the writer's memory is not looked for here, so it is any text.
 */
public record WriterDoubts(Set<String> words)
{
    private static final Pattern NAMED = Pattern.compile("(.*?) version v?(\\d{1,9}(?:\\.\\d{1,9}){0,2}).*");
    private static final int LONGEST = 200;
    private static final List<Entry> TABLE = table();

    private record Entry(String writer, int[] version, WriterDoubts doubts) {}

    static WriterDoubts of(Optional<String> createdBy)
    {
        String stated = createdBy.orElse("").replace('\n', ' ');
        stated = stated.substring(0, stated.offsetByCodePoints(0, Math.min(LONGEST, stated.codePointCount(0, stated.length()))));
        Matcher named = NAMED.matcher(stated);
        boolean found = named.matches();
        String name = found ? named.group(1) : "";
        int[] version = found ? version(named.group(2)) : new int[0];
        String writer = null;
        WriterDoubts doubts = null;
        for (Entry entry : TABLE) {
            if (writer == null && fits(entry.writer(), stated, name)) {
                writer = entry.writer();
                doubts = entry.doubts();
            }
            if (entry.writer().equals(writer) && Arrays.compare(version, entry.version()) >= 0) {
                doubts = entry.doubts();
            }
        }
        return doubts;
    }

    private static boolean fits(String writer, String stated, String name)
    {
        return writer.endsWith("*") ? stated.startsWith(writer.substring(0, writer.length() - 1)) : writer.equals(name);
    }

    private static int[] version(String spelled)
    {
        return Arrays.stream(spelled.split("\\.")).mapToInt(Integer::parseInt).toArray();
    }

    private static List<Entry> table()
    {
        try (InputStream table = WriterDoubts.class.getResourceAsStream("parquet-writers.txt")) {
            return new String(table.readAllBytes(), StandardCharsets.UTF_8).lines()
                    .filter(line -> !line.startsWith("#"))
                    .map(line -> line.split(" "))
                    .map(words -> new Entry(words[0], version(words[1]), new WriterDoubts(Set.of(Arrays.copyOfRange(words, 2, words.length)))))
                    .toList();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Whether bounds of a column are not believed. */
    private boolean doubtsBounds(PrimitiveType type)
    {
        PrimitiveTypeName stored = type.getPrimitiveTypeName();
        boolean isDecimal = type.getLogicalTypeAnnotation() instanceof DecimalLogicalTypeAnnotation;
        return words.contains("bounds") || switch (stored) {
            case BOOLEAN -> words.contains("booleans");
            case BINARY -> isDecimal ? words.contains("varying") : words.contains("text") || words.contains("coded");
            case FIXED_LEN_BYTE_ARRAY -> words.contains(isDecimal ? "fixed" : "text");
            default -> false;
        };
    }

    /** Whether no NULL count of a column is believed, not even zero. */
    private boolean doubtsCounts(PrimitiveType type)
    {
        return words.contains("counts") || (words.contains("coded") && type.getPrimitiveTypeName() == PrimitiveTypeName.BINARY);
    }

    /** The statistics of a chunk as far as they are believed. */
    Statistics believed(Statistics stated, PrimitiveType type)
    {
        Statistics believed = stated.deepCopy();
        if (doubtsBounds(type)) {
            believed.unsetMin();
            believed.unsetMax();
            believed.unsetMin_value();
            believed.unsetMax_value();
        }
        if (doubtsCounts(type) || (words.contains("some") && stated.getNull_count() > 0)) {
            believed.unsetNull_count();
        }
        return believed;
    }

    /** The column index of a chunk as far as it is believed; null if not at all. */
    public ColumnIndex believed(ColumnIndex stated, ColumnDescriptor column)
    {
        PrimitiveType type = column.getPrimitiveType();
        if (stated == null || doubtsBounds(type)) {
            return null;
        }
        if (!doubtsCounts(type) && !words.contains("some")) {
            return stated;
        }
        BoundaryOrder order = stated.getBoundaryOrder();
        return ColumnIndexBuilder.build(type, order, stated.getNullPages(), null, stated.getMinValues(), stated.getMaxValues());
    }
}
