package io.skipbridge.trino.read.text;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.OpenFile;
import io.skipbridge.trino.read.file.RowFormat;
import io.skipbridge.trino.read.storage.PlannedInputFile;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.hive.formats.line.LineBuffer;
import io.trino.hive.formats.line.LineDeserializer;
import io.trino.hive.formats.line.LineDeserializerFactory;
import io.trino.hive.formats.line.LineReader;
import io.trino.hive.formats.line.LineReaderFactory;
import io.trino.hive.formats.line.csv.CsvDeserializerFactory;
import io.trino.hive.formats.line.json.JsonDeserializerFactory;
import io.trino.hive.formats.line.openxjson.OpenXJsonDeserializerFactory;
import io.trino.hive.formats.line.regex.RegexDeserializerFactory;
import io.trino.hive.formats.line.sequence.SequenceFileReaderFactory;
import io.trino.hive.formats.line.simple.SimpleDeserializerFactory;
import io.trino.hive.formats.line.text.TextLineReaderFactory;
import io.trino.spi.PageBuilder;
import io.trino.spi.TrinoException;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.type.TypeManager;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Files whose records are lines, by Trino's own decoders: text, CSV, JSON, regular expressions, and text in SequenceFiles. */
public final class LineFormat
        implements RowFormat
{
    private static final String SERDE = "serialization.lib";
    private static final String INPUT_FORMAT = "file.inputformat";
    private static final String HEADER_LINES = "skip.header.line.count";
    private static final String FOOTER_LINES = "skip.footer.line.count";
    /** Trino has a decoder for it, but its hive connector refuses tables of this SerDe. */
    private static final String REFUSED = "org.apache.hadoop.hive.serde2.JsonSerDe";
    /** The limit of Trino's hive connector, {@code hive.text.max-line-length}. */
    private static final int MAX_LINE = 100 << 20;
    /** Trino's reader of lines loses the first line if a range ends in a byte order mark. Planners cut no file so early. */
    static final int FIRST_CUT = 4;
    private static final int BUFFER = 32 << 10;
    private static final List<LineReaderFactory> READERS = List.of(
            new TextLineReaderFactory(BUFFER, 1 << 10, MAX_LINE),
            new SequenceFileReaderFactory(1 << 10, MAX_LINE));
    private static final List<LineDeserializerFactory> DESERIALIZERS = List.of(
            new SimpleDeserializerFactory(),
            new CsvDeserializerFactory(),
            new JsonDeserializerFactory(),
            new OpenXJsonDeserializerFactory(),
            new RegexDeserializerFactory());

    private final String spelled;
    private final boolean byName;
    private final TypeManager types;
    private final Map<ReaderSpec, Decoder> decoders = new HashMap<>();

    /** @param byName whether a partition's columns are those of the same name */
    public LineFormat(String spelled, boolean byName, TypeManager types)
    {
        this.spelled = spelled;
        this.byName = byName;
        this.types = types;
    }

    @Override
    public String spelled()
    {
        return spelled;
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
        return open(scan.dataColumns(), file.planned(), file.bytes());
    }

    FileReader open(List<BridgeColumnHandle> columns, PlannedFile planned, ReadableFile bytes)
            throws IOException
    {
        Decoder decoder = decoders.computeIfAbsent(planned.reader(), _ -> decoder(columns, planned));
        long length = Math.min(planned.size() - planned.start(), planned.length());
        LineReader lines = length <= 0 ? null : lines(planned, bytes, length);
        return new LineFileReader(planned, spelled, lines, decoder);
    }

    private static LineReader lines(PlannedFile planned, ReadableFile bytes, long length)
            throws IOException
    {
        Map<String, String> properties = planned.reader().properties();
        if (planned.start() > 0 && planned.start() < FIRST_CUT) {
            throw new TrinoException(BridgeErrorCode.UNSUPPORTED_FILE, "%s is cut at byte %d. Set splits.target_bytes of the planner to some kilobytes".formatted(planned.path(), planned.start()));
        }
        int header = lines(planned, HEADER_LINES);
        int footer = lines(planned, FOOTER_LINES);
        return readerOf(planned, properties.getOrDefault(INPUT_FORMAT, ""))
                .createLineReader(new PlannedInputFile(planned.path(), bytes), planned.start(), length, header, footer);
    }

    private Decoder decoder(List<BridgeColumnHandle> wanted, PlannedFile planned)
    {
        Map<String, String> properties = planned.reader().properties();
        FileColumns columns = FileColumns.of(wanted, planned, byName, types);
        LineDeserializerFactory factory = deserializerOf(planned, properties.getOrDefault(SERDE, ""));
        LineDeserializer deserializer = columns.columns().isEmpty() ? LineDeserializer.EMPTY_LINE_DESERIALIZER : factory.create(columns.columns(), properties);
        LineBuffer line = new LineBuffer(1 << 10, MAX_LINE);
        return new Decoder(columns, deserializer, line, new PageBuilder(deserializer.getTypes()));
    }

    private static LineReaderFactory readerOf(PlannedFile planned, String inputFormat)
    {
        return READERS.stream()
                .filter(known -> known.getHiveInputFormatClassNames().contains(inputFormat))
                .findFirst()
                .orElseThrow(() -> unsupported(planned, "input format", inputFormat));
    }

    private static LineDeserializerFactory deserializerOf(PlannedFile planned, String serde)
    {
        return DESERIALIZERS.stream()
                .filter(known -> known.getHiveSerDeClassNames().contains(serde) && !serde.equals(REFUSED))
                .findFirst()
                .orElseThrow(() -> unsupported(planned, "SerDe", serde));
    }

    private static TrinoException unsupported(PlannedFile planned, String what, String name)
    {
        return new TrinoException(BridgeErrorCode.UNSUPPORTED_FORMAT, "%s is of the %s '%s', which Trino has no reader for".formatted(planned.path(), what, name));
    }

    private static int lines(PlannedFile planned, String property)
    {
        String value = planned.reader().properties().getOrDefault(property, "0");
        try {
            int lines = Integer.parseInt(value);
            if (lines >= 0) {
                return lines;
            }
        }
        catch (NumberFormatException e) {
            // refused below
        }
        throw new TrinoException(BridgeErrorCode.UNSUPPORTED_FILE, "%s: the table's property %s is '%s', which is no number of lines".formatted(planned.path(), property, value));
    }

    @Override
    public boolean damaged(IOException problem)
    {
        return true;
    }

    /** What files of one description share; used by one file at a time. */
    record Decoder(FileColumns columns, LineDeserializer deserializer, LineBuffer line, PageBuilder rows) {}
}
