package io.skipbridge.trino.metadata;

import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.type.Type;

import java.util.List;
import java.util.Locale;
import java.util.Optional;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.TimestampWithTimeZoneType.TIMESTAMP_TZ_MILLIS;
import static io.trino.spi.type.VarcharType.VARCHAR;

/** A system table, such as {@code "name$files"}, with its columns in the order of the wire. */
enum SystemTableKind
{
    FILES(
            column("path", VARCHAR),
            column("partition", VARCHAR),
            column("size", BIGINT),
            column("modified", TIMESTAMP_TZ_MILLIS),
            column("rows", BIGINT),
            column("indexed", BOOLEAN),
            column("bounds", VARCHAR),
            column("logs", BIGINT),
            column("log_bytes", BIGINT),
            column("commit", VARCHAR)),
    PARTITIONS(
            column("partition", VARCHAR),
            column("location", VARCHAR),
            column("files", BIGINT),
            column("size", BIGINT),
            column("rows", BIGINT),
            column("indexed_files", BIGINT),
            column("modified", TIMESTAMP_TZ_MILLIS),
            column("logs", BIGINT),
            column("log_bytes", BIGINT)),
    INDEXES(
            column("kind", VARCHAR),
            column("name", VARCHAR),
            column("column", VARCHAR),
            column("generation", BIGINT),
            column("created", TIMESTAMP_TZ_MILLIS),
            column("files", BIGINT),
            column("files_known", BIGINT),
            column("files_exact", BIGINT),
            column("problem", VARCHAR)),
    TIMELINE(
            column("instant", VARCHAR),
            column("completion", VARCHAR),
            column("action", VARCHAR),
            column("state", VARCHAR),
            column("size", BIGINT),
            column("modified", TIMESTAMP_TZ_MILLIS)),
    SEGMENTS(
            column("segment", VARCHAR),
            column("status", VARCHAR),
            column("started", TIMESTAMP_TZ_MILLIS),
            column("finished", TIMESTAMP_TZ_MILLIS),
            column("format", VARCHAR),
            column("files", BIGINT),
            column("size", BIGINT),
            column("indexed_files", BIGINT),
            column("views", VARCHAR),
            column("merged_into", VARCHAR),
            column("paths", VARCHAR));

    private final List<ColumnMetadata> columns;

    SystemTableKind(ColumnMetadata... columns)
    {
        this.columns = List.of(columns);
    }

    List<ColumnMetadata> columns()
    {
        return columns;
    }

    /** The kind's name on the wire. */
    String word()
    {
        return name().toLowerCase(Locale.ENGLISH);
    }

    /** The kind that a table name ends with, if any. */
    static Optional<SystemTableKind> of(SchemaTableName name)
    {
        for (SystemTableKind kind : values()) {
            String suffix = "$" + kind.word();
            if (name.getTableName().endsWith(suffix) && name.getTableName().length() > suffix.length()) {
                return Optional.of(kind);
            }
        }
        return Optional.empty();
    }

    SchemaTableName base(SchemaTableName name)
    {
        return new SchemaTableName(name.getSchemaName(), name.getTableName().substring(0, name.getTableName().length() - word().length() - 1));
    }

    private static ColumnMetadata column(String name, Type type)
    {
        return new ColumnMetadata(name, type);
    }
}
