package io.skipbridge.trino.read.file;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.read.storage.ReadableFile;
import io.trino.hive.formats.avro.AvroTypeException;
import io.trino.parquet.ParquetCorruptionException;
import io.trino.spi.TrinoException;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Locale;
import java.util.function.Predicate;

import static io.trino.spi.StandardErrorCode.GENERIC_INTERNAL_ERROR;
import static io.trino.spi.StandardErrorCode.INVALID_CAST_ARGUMENT;
import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;

/** Turns any exception of a reader into an error that names the file. */
public final class ReadFailure
{
    private ReadFailure() {}

    /** Of a reader of Parquet. */
    public static RuntimeException of(Throwable problem, String path)
    {
        if (problem instanceof TrinoException e && e.getErrorCode().equals(INVALID_CAST_ARGUMENT.toErrorCode())) {
            return otherType(path, e.getMessage(), e);
        }
        return of(problem, path, "Parquet", e -> e instanceof ParquetCorruptionException || fromDecoder(e));
    }

    /** @param damaged whether an exception says that the bytes are not of the format; else it is one of the storage */
    public static RuntimeException of(Throwable problem, String path, String format, Predicate<IOException> damaged)
    {
        return switch (problem) {
            case Exception e when avroType(e) instanceof AvroTypeException cause -> otherType(path, cause.getMessage(), e);
            case TrinoException e when e.getErrorCode().equals(NOT_SUPPORTED.toErrorCode()) && e.getMessage().toLowerCase(Locale.ENGLISH).contains("column") ->
                    new TrinoException(BridgeErrorCode.TYPE_MISMATCH, "%s: %s".formatted(path, e.getMessage()), e);
            case TrinoException e when e.getErrorCode().equals(GENERIC_INTERNAL_ERROR.toErrorCode()) && e.getCause() instanceof IOException cause -> of(cause, path, format, damaged);
            case TrinoException e -> e;
            case IOException e when damaged.test(e) -> new TrinoException(BridgeErrorCode.FILE_CORRUPT, damage(path, format, reason(e)), e);
            case IOException e -> ReadableFile.unreadable(path, e);
            case UncheckedIOException e -> of(e.getCause(), path, format, damaged);
            case ArithmeticException e -> otherType(path, String.valueOf(e.getMessage()), e);
            case RuntimeException e -> new TrinoException(BridgeErrorCode.FILE_CORRUPT, damage(path, format, e.toString()), e);
            default -> throw (Error) problem;
        };
    }

    /** Of a sound file with a value that the type of the table's column does not have. */
    public static TrinoException otherType(String place, String reason, Exception problem)
    {
        return new TrinoException(
                BridgeErrorCode.TYPE_MISMATCH,
                "%s cannot be read: a value is not one of the column's type in the table: %s. Declare a type that holds it, or write the file again".formatted(place, reason),
                problem);
    }

    /** What Avro's decoder says of a type that is not the column's; null if it does not. */
    private static Throwable avroType(Throwable problem)
    {
        return problem == null || problem instanceof AvroTypeException ? problem : avroType(problem.getCause());
    }

    private static String damage(String path, String format, String reason)
    {
        return "%s cannot be read as %s: %s. Restore the file, write it again, or remove it".formatted(path, format, reason);
    }

    /** What the reader found, without the words and the path that Trino's exception puts around it. */
    private static String reason(IOException problem)
    {
        String reason = String.valueOf(problem.getMessage());
        if (problem instanceof ParquetCorruptionException) {
            reason = reason.replaceFirst("^Malformed Parquet file\\. ", "").replaceFirst(" \\[[^\\[]*]$", "");
        }
        return reason.replaceFirst("\\.$", "");
    }

    /** Trino's decoder of page headers reports damaged bytes as an IOException. */
    private static boolean fromDecoder(IOException problem)
    {
        return problem.getCause() != null && problem.getCause().getClass().getName().contains(".thrift.");
    }
}
