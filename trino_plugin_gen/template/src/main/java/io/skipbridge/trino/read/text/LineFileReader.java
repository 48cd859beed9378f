package io.skipbridge.trino.read.text;

import com.fasterxml.jackson.core.exc.InputCoercionException;
import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.ReadFailure;
import io.skipbridge.trino.read.text.LineFormat.Decoder;
import io.skipbridge.trino.split.PlannedFile;
import io.trino.hive.formats.line.LineReader;
import io.trino.spi.Page;
import io.trino.spi.PageBuilder;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.io.IOException;
import java.time.DateTimeException;

/** Decodes the lines of a file, or of its byte range. A line that cannot be decoded is an error that tells which one. */
final class LineFileReader
        implements FileReader
{
    private final PlannedFile file;
    private final String format;
    private final LineReader lines;
    private final Decoder decoder;
    private long read;

    /** @param lines null if the range is empty */
    LineFileReader(PlannedFile file, String format, LineReader lines, Decoder decoder)
    {
        this.file = file;
        this.format = format;
        this.lines = lines;
        this.decoder = decoder;
    }

    @Override
    public SourcePage next()
            throws IOException
    {
        PageBuilder rows = decoder.rows();
        rows.reset();
        if (lines != null) {
            while (!rows.isFull() && readLine()) {
                read++;
                decode(rows);
            }
        }
        if (rows.isEmpty()) {
            return null;
        }
        Page page = build(rows);
        rows.reset();
        if (!decoder.columns().converts()) {
            return SourcePage.create(page);
        }
        Block[] blocks = new Block[page.getChannelCount()];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = page.getBlock(i);
        }
        try {
            return SourcePage.create(new Page(page.getPositionCount(), decoder.columns().converted(blocks)));
        }
        catch (TypedCsv.BadValue e) {
            throw broken(place(read - page.getPositionCount() + e.position() + 1), e);
        }
    }

    @Override
    public int channelOf(int dataColumn)
    {
        return decoder.columns().channels().get(dataColumn);
    }

    private boolean readLine()
            throws IOException
    {
        try {
            return lines.readLine(decoder.line());
        }
        catch (TrinoException e) {
            throw e;
        }
        catch (IOException | RuntimeException e) {
            throw broken("after %s".formatted(place(read)), e);
        }
    }

    private Page build(PageBuilder rows)
    {
        try {
            return rows.build();
        }
        catch (IllegalStateException e) {
            // Trino's decoder of JSON adds a value for each of two fields of one name
            throw broken("up to %s, one of which may have two fields of one name".formatted(place(read)), e);
        }
    }

    private void decode(PageBuilder rows)
            throws IOException
    {
        try {
            decoder.deserializer().deserialize(decoder.line(), rows);
        }
        catch (TrinoException e) {
            throw e;
        }
        catch (InputCoercionException | ArithmeticException | DateTimeException e) {
            throw ReadFailure.otherType("%s, %s".formatted(file.path(), place(read)), String.valueOf(e.getMessage()).lines().findFirst().orElse(""), e);
        }
        catch (IOException | RuntimeException e) {
            throw broken(place(read), e);
        }
    }

    private TrinoException broken(String place, Exception problem)
    {
        String reason = problem.getMessage() == null ? problem.toString() : problem.getMessage();
        return new TrinoException(BridgeErrorCode.FILE_CORRUPT, "%s, %s: cannot be read as %s: %s".formatted(file.path(), place, format, reason), problem);
    }

    /** Which one it is among the records behind a header. */
    private String place(long record)
    {
        return file.start() == 0 ? "record %d".formatted(record) : "record %d behind byte %d".formatted(record, file.start());
    }

    @Override
    public long memoryBytes()
    {
        return decoder.rows().getRetainedSizeInBytes() + decoder.line().getRetainedSize() + (lines == null ? 0 : lines.getRetainedSize());
    }

    @Override
    public void close()
            throws IOException
    {
        decoder.rows().reset();
        if (lines != null) {
            lines.close();
        }
    }
}
