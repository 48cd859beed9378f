package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.UnsupportedSlice;
import org.apache.avro.Conversions;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.util.Utf8;
import org.apache.hudi.avro.AvroRecordContext;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.util.OrderingValues;
import org.apache.hudi.common.util.collection.ArrayComparable;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.sql.Date;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;

/**
 * What Hudi's reader asks about records. Where records are ordered by event time, ordering values are compared as values of their field's type, also
 * those of deletes, which logs hold in types of their own.
 */
final class RecordValues
        extends AvroRecordContext
{
    private static final Conversions.DecimalConversion DECIMAL = new Conversions.DecimalConversion();

    private final transient Schema table;
    private final transient List<String> orderingFields;
    private final transient BooleanSupplier byEventTime;
    private final transient List<Path> paths = new ArrayList<>();

    /** @param byEventTime whether records are merged by their event time; known once Hudi's reader is made */
    RecordValues(HoodieTableConfig config, Schema table, BooleanSupplier byEventTime)
    {
        super(config, config.getPayloadClass());
        this.table = table;
        this.orderingFields = config.getOrderingFields();
        this.byEventTime = byEventTime;
    }

    @Override
    public Object getValue(IndexedRecord record, HoodieSchema schema, String name)
    {
        Object value = path(name).value(record);
        if (value == null && name.equals(HoodieRecord.RECORD_KEY_METADATA_FIELD)) {
            throw new UnsupportedSlice("a row has no record key. Write it again");
        }
        return value;
    }

    @Override
    public String getMetaFieldValue(IndexedRecord record, int position)
    {
        Object value = record.get(position);
        return value == null ? null : value.toString();
    }

    /** A record that is kept until it is merged. A row of a page is copied, since it would keep its whole page. */
    @Override
    public IndexedRecord toBinaryRow(HoodieSchema schema, IndexedRecord record)
    {
        if (!(record instanceof PageRecord row)) {
            return record;
        }
        GenericData.Record copy = new GenericData.Record(row.getSchema());
        for (int i = 0; i < row.getSchema().getFields().size(); i++) {
            copy.put(i, row.get(i));
        }
        return copy;
    }

    /** Records stay as they are: what is returned of them is chosen when pages are made. */
    @Override
    public UnaryOperator<IndexedRecord> projectRecord(HoodieSchema from, HoodieSchema to, Map<String, String> renamedColumns)
    {
        return renamedColumns.isEmpty() ? UnaryOperator.identity() : super.projectRecord(from, to, renamedColumns);
    }

    @Override
    public Comparable getOrderingValue(IndexedRecord record, HoodieSchema schema, List<String> fields)
    {
        if (!byEventTime.getAsBoolean()) {
            return super.getOrderingValue(record, schema, fields);
        }
        return OrderingValues.create(fields, field -> {
            Object value = getValue(record, schema, field);
            return value == null ? OrderingValues.getDefault() : ordering(value, field);
        });
    }

    @Override
    public Comparable getOrderingValue(IndexedRecord record, HoodieSchema schema, String[] fields)
    {
        return getOrderingValue(record, schema, fields == null ? List.of() : Arrays.asList(fields));
    }

    @Override
    public Comparable convertOrderingValueToEngineType(Comparable value)
    {
        // a delete without an event time has the default, whatever the field's type, and is told by it
        if (!byEventTime.getAsBoolean() || OrderingValues.isCommitTimeOrderingValue(value)) {
            return super.convertOrderingValueToEngineType(value);
        }
        if (value instanceof ArrayComparable several) {
            List<Comparable> values = OrderingValues.getValues(several);
            return OrderingValues.create(orderingFields, field -> ordering(values.get(orderingFields.indexOf(field)), field));
        }
        return orderingFields.size() == 1 ? ordering(value, orderingFields.getFirst()) : value;
    }

    /** The value in the type of its field in the table. */
    private Comparable ordering(Object value, String field)
    {
        Schema schema = path(field).type();
        if (schema == null) {
            return (Comparable) value;
        }
        if (schema.getLogicalType() instanceof LogicalTypes.Decimal decimal) {
            return switch (value) {
                case GenericFixed fixed -> DECIMAL.fromFixed(fixed, schema, decimal);
                case ByteBuffer bytes -> DECIMAL.fromBytes(bytes.duplicate(), schema, decimal);
                case BigDecimal number -> number;
                case Number number -> new BigDecimal(number.toString());
                default -> (Comparable) value;
            };
        }
        return switch (schema.getType()) {
            case INT -> (Comparable) (value instanceof Number number ? (Object) number.intValue() : value instanceof Date || value instanceof LocalDate ? days(value) : value);
            case LONG -> (Comparable) (value instanceof Number number ? (Object) number.longValue() : value instanceof Timestamp || value instanceof Instant ? time(value, schema) : value);
            case FLOAT -> (Comparable) (value instanceof Number number ? (Object) number.floatValue() : value);
            case DOUBLE -> (Comparable) (value instanceof Number number ? (Object) number.doubleValue() : value);
            case STRING, ENUM -> new Utf8(value.toString());
            default -> (Comparable) value;
        };
    }

    private static Object days(Object value)
    {
        return (int) (value instanceof Date date ? date.toLocalDate() : (LocalDate) value).toEpochDay();
    }

    private static Object time(Object value, Schema schema)
    {
        Instant instant = value instanceof Timestamp timestamp ? timestamp.toInstant() : (Instant) value;
        ChronoUnit unit = AvroTypes.unitOf(schema) == AvroTypes.TimeUnit.MILLIS ? ChronoUnit.MILLIS : ChronoUnit.MICROS;
        return unit.between(Instant.EPOCH, instant);
    }

    /** The few fields that merging asks for, each for every record. */
    private Path path(String name)
    {
        for (Path path : paths) {
            if (path.name.equals(name)) {
                return path;
            }
        }
        Path path = new Path(name);
        paths.add(path);
        return path;
    }

    /** A field, and its place in the records of the schema that was asked last. */
    private final class Path
    {
        private final String name;
        private final String[] parts;
        private Optional<Schema> type;
        private Schema schema;
        private int position;

        Path(String name)
        {
            this.name = name;
            this.parts = name.split("\\.");
        }

        Object value(IndexedRecord record)
        {
            if (record == null) {
                return null;
            }
            if (schema != record.getSchema()) {
                schema = record.getSchema();
                position = position(schema, parts[0]);
            }
            Object value = position < 0 ? null : record.get(position);
            for (int i = 1; i < parts.length; i++) {
                int inner = value instanceof IndexedRecord parent ? position(parent.getSchema(), parts[i]) : -1;
                value = inner < 0 ? null : ((IndexedRecord) value).get(inner);
            }
            return value;
        }

        /** The type in the table; null if the table lacks the field. */
        Schema type()
        {
            if (type == null) {
                type = Optional.ofNullable(find());
            }
            return type.orElse(null);
        }

        private Schema find()
        {
            Schema found = table;
            for (String part : parts) {
                Schema.Field field = found.getType() == Schema.Type.RECORD ? found.getField(part) : null;
                if (field == null) {
                    return null;
                }
                found = AvroTypes.nonNull(field.schema(), name);
            }
            return found;
        }

        private static int position(Schema schema, String name)
        {
            Schema.Field field = schema.getField(name);
            return field == null ? -1 : field.pos();
        }
    }
}
