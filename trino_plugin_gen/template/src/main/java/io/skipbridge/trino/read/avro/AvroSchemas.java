package io.skipbridge.trino.read.avro;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.FileScan;
import io.trino.hive.formats.avro.AvroTypeException;
import io.trino.hive.formats.avro.HiveAvroTypeBlockHandler;
import io.trino.spi.TrinoException;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;
import org.apache.avro.JsonProperties;
import org.apache.avro.Schema;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;

import static io.trino.plugin.hive.avro.AvroHiveFileUtils.determineSchemaOrThrowException;
import static io.trino.plugin.hive.avro.AvroHiveFileUtils.wrapInUnionWithNull;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;

/**
 * The schema with which files are read. A table declares it by {@code avro.schema.literal}, else by {@code avro.schema.url}, else by its columns. The
 * schema of a file is resolved to it by Avro's rules.
 */
final class AvroSchemas
{
    private static final String LITERAL = "avro.schema.literal";
    private static final String URL = "avro.schema.url";
    private static final String NONE = "none";

    private AvroSchemas() {}

    static Schema declared(FileScan scan, Map<String, String> properties)
    {
        Map<String, String> all = new HashMap<>(properties);
        String literal = properties.getOrDefault(LITERAL, "");
        String url = properties.getOrDefault(URL, "");
        try {
            if ((literal.isBlank() || literal.equals(NONE)) && !url.isBlank()) {
                all.put(LITERAL, new String(scan.files().readAll(scan.session(), url), StandardCharsets.UTF_8));
            }
            // no file system: the URL was read
            return determineSchemaOrThrowException(null, all);
        }
        catch (IOException | RuntimeException e) {
            if (e instanceof TrinoException known) {
                throw known;
            }
            throw new TrinoException(BridgeErrorCode.UNSUPPORTED_FILE, "The table's Avro schema cannot be read (%s): %s".formatted(url.isBlank() ? LITERAL : url, e.getMessage()), e);
        }
    }

    /** The fields of the scan's columns in their order; a field without a column where there are none, so that rows are counted. */
    static Schema projected(Schema declared, List<BridgeColumnHandle> columns, String path)
    {
        Map<String, String> spelled = new HashMap<>();
        declared.getFields().forEach(field -> spelled.putIfAbsent(field.name().toLowerCase(Locale.ENGLISH), field.name()));
        List<Schema.Field> fields = new ArrayList<>();
        for (BridgeColumnHandle column : columns) {
            Schema.Field field = declared.getField(column.name()) != null ? declared.getField(column.name()) : declared.getField(spelled.getOrDefault(column.name(), ""));
            if (field == null) {
                throw new TrinoException(BridgeErrorCode.TYPE_MISMATCH, "%s: the table's Avro schema has no field for column '%s'".formatted(path, column.name()));
            }
            fields.add(requireType(copy(field), column, path));
        }
        if (fields.isEmpty()) {
            String unused = "f" + UUID.randomUUID().toString().replace('-', '_');
            fields.add(new Schema.Field(unused, Schema.create(Schema.Type.NULL), null, JsonProperties.NULL_VALUE));
        }
        return Schema.createRecord(declared.getName(), declared.getDoc(), declared.getNamespace(), false, fields);
    }

    private static Schema.Field copy(Schema.Field field)
    {
        try {
            return new Schema.Field(field, field.schema());
        }
        catch (org.apache.avro.AvroTypeException e) {
            // Trino takes a default that is not of the field's type for NULL
            return new Schema.Field(field.name(), wrapInUnionWithNull(field.schema()), field.doc(), JsonProperties.NULL_VALUE);
        }
    }

    /** Trino's reader gives values of the schema's types, whatever the column's. */
    private static Schema.Field requireType(Schema.Field field, BridgeColumnHandle column, String path)
    {
        try {
            Type read = new HiveAvroTypeBlockHandler(TIMESTAMP_MICROS).typeFor(field.schema());
            if (!read.equals(column.type()) && !(read instanceof VarcharType && column.type() instanceof VarcharType)) {
                throw new TrinoException(
                        BridgeErrorCode.TYPE_MISMATCH,
                        "%s: column '%s' is %s in the table and %s in its Avro schema".formatted(path, column.name(), column.type().getDisplayName(), read.getDisplayName()));
            }
            return field;
        }
        catch (AvroTypeException e) {
            throw mismatch(path, e);
        }
    }

    static TrinoException mismatch(String path, Exception problem)
    {
        return new TrinoException(BridgeErrorCode.TYPE_MISMATCH, "%s: %s".formatted(path, problem.getMessage()), problem);
    }
}
