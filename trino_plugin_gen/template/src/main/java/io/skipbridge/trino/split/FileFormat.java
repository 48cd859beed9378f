package io.skipbridge.trino.split;

import io.skipbridge.trino.BridgeErrorCode;
import io.trino.spi.TrinoException;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/** The formats of files and file slices for which this connector has a reader. */
public enum FileFormat
{
    PARQUET,
    ORC,
    AVRO,
    CSV,
    JSON,
    TEXT,
    REGEX,
    SEQUENCEFILE,
    RCFILE,
    /** A base file and logs of Hudi, merged when they are read. */
    HUDI,
    /** A base file of Hudi that was written under an older schema, perhaps with logs. */
    HUDI_BY_ID;

    /** The format of a file that {@link SupportedSlices} accepted. */
    public static FileFormat of(PlannedFile file)
    {
        return find(file.reader().format()).orElseThrow(() -> unsupported(file.path(), file.reader().format()));
    }

    static Optional<FileFormat> find(String name)
    {
        return Arrays.stream(values()).filter(format -> format.wireName().equals(name)).findFirst();
    }

    static TrinoException unsupported(String path, String format)
    {
        String known = Arrays.stream(values()).map(FileFormat::wireName).collect(Collectors.joining(", "));
        return new TrinoException(
                BridgeErrorCode.UNSUPPORTED_FORMAT,
                "File %s has the format %s; this connector reads %s".formatted(path, format, known));
    }

    String wireName()
    {
        return name().toLowerCase(Locale.ENGLISH);
    }
}
