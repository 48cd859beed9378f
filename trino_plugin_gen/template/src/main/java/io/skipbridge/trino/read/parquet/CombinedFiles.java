package io.skipbridge.trino.read.parquet;

import io.skipbridge.trino.read.footer.Footer;
import io.skipbridge.trino.read.footer.ReadSchema;
import io.skipbridge.trino.read.footer.RowGroupFooter;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.parquet.ParquetDataSource;
import io.trino.parquet.reader.RowGroupInfo;
import io.trino.spi.block.Block;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/** Files of one schema that a single reader reads as one. Maps a row number to its file. */
final class CombinedFiles
{
    private final ReadSchema schema;
    private final Optional<String> createdBy;
    private final ParquetDataSource source;
    private final List<RowGroupInfo> rowGroups = new ArrayList<>();
    private final List<PlannedFile> files = new ArrayList<>();
    private final List<Block[]> constants = new ArrayList<>();
    private long[] firstRows = new long[16];
    private long rows;
    private long bytes;

    CombinedFiles(ReadSchema schema, Optional<String> createdBy, ParquetDataSource source)
    {
        this.schema = schema;
        this.createdBy = createdBy;
        this.source = source;
    }

    boolean accepts(ReadSchema otherSchema, Footer footer)
    {
        return schema == otherSchema && createdBy.equals(footer.createdBy());
    }

    void add(PlannedFile file, Block[] fileConstants, Footer footer, List<RowGroupInfo> selected)
    {
        if (files.size() == firstRows.length) {
            firstRows = Arrays.copyOf(firstRows, firstRows.length * 2);
        }
        firstRows[files.size()] = rows;
        files.add(file);
        constants.add(fileConstants);
        rowGroups.addAll(selected);
        for (RowGroupFooter group : footer.rowGroups()) {
            rows += group.rows();
        }
        bytes += file.size();
    }

    /** The number of rows so far, which is the next file's first row. */
    long rows()
    {
        return rows;
    }

    long bytes()
    {
        return bytes;
    }

    /** The memory of the files' bytes, and of those that were rewritten. */
    long heldBytes()
    {
        return isLarge() ? 0 : source.getEstimatedSize();
    }

    /** Whether this is one large file, of which ranges are read. */
    boolean isLarge()
    {
        return !(source instanceof ConcatenatedDataSource);
    }

    /** Rows were handed out, and the engine wants more. */
    void readOn()
    {
        if (source instanceof AheadDataSource ahead) {
            ahead.readOn();
        }
    }

    int fileOfRow(long row)
    {
        int found = Arrays.binarySearch(firstRows, 0, files.size(), row);
        int file = found >= 0 ? found : -found - 2;
        // a file without rows has the same first row as the next file
        while (file + 1 < files.size() && firstRows[file + 1] == row) {
            file++;
        }
        return file;
    }

    PlannedFile file(int ordinal)
    {
        return files.get(ordinal);
    }

    Block[] constants(int ordinal)
    {
        return constants.get(ordinal);
    }

    int size()
    {
        return files.size();
    }

    ReadSchema schema()
    {
        return schema;
    }

    Optional<String> createdBy()
    {
        return createdBy;
    }

    ParquetDataSource source()
    {
        return source;
    }

    List<RowGroupInfo> rowGroups()
    {
        return rowGroups;
    }
}
