package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.UnsupportedSlice;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeOperators;
import org.apache.avro.LogicalType;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;

import java.util.List;
import java.util.Locale;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MICROS;
import static io.trino.spi.type.TimestampType.TIMESTAMP_MILLIS;
import static io.trino.spi.type.VarbinaryType.VARBINARY;
import static io.trino.spi.type.VarcharType.VARCHAR;

/** The engine's type that holds all values of an Avro schema. */
final class AvroTypes
{
    private static final TypeOperators OPERATORS = new TypeOperators();

    private AvroTypes() {}

    /** @throws UnsupportedSlice naming the column if the engine has no type for it */
    static Type typeOf(Schema schema, String column)
    {
        Schema value = nonNull(schema, column);
        LogicalType logical = value.getLogicalType();
        if (logical instanceof LogicalTypes.Decimal decimal) {
            if (decimal.getPrecision() > 38) {
                throw unsupported(schema, column);
            }
            return DecimalType.createDecimalType(decimal.getPrecision(), decimal.getScale());
        }
        return switch (value.getType()) {
            case BOOLEAN -> BOOLEAN;
            case INT -> isDate(logical) ? DATE : plain(INTEGER, logical, value, column);
            case LONG -> unitOf(value) == TimeUnit.NONE ? plain(BIGINT, logical, value, column) : unitOf(value) == TimeUnit.MILLIS ? TIMESTAMP_MILLIS : TIMESTAMP_MICROS;
            case FLOAT -> REAL;
            case DOUBLE -> DOUBLE;
            case STRING, ENUM -> VARCHAR;
            case BYTES, FIXED -> VARBINARY;
            case ARRAY -> new ArrayType(typeOf(value.getElementType(), column));
            case MAP -> new MapType(VARCHAR, typeOf(value.getValueType(), column), OPERATORS);
            case RECORD -> {
                List<RowType.Field> fields = value.getFields().stream()
                        .map(field -> RowType.field(lower(field.name()), typeOf(field.schema(), column + "." + field.name())))
                        .toList();
                yield RowType.from(fields);
            }
            default -> throw unsupported(schema, column);
        };
    }

    private static Type plain(Type type, LogicalType logical, Schema schema, String column)
    {
        if (logical != null) {
            throw unsupported(schema, column);
        }
        return type;
    }

    static boolean isDate(LogicalType logical)
    {
        return logical instanceof LogicalTypes.Date;
    }

    /** The unit of a number that is a time. */
    enum TimeUnit
    {
        NONE, MILLIS, MICROS
    }

    static TimeUnit unitOf(Schema schema)
    {
        return switch (schema.getLogicalType()) {
            case LogicalTypes.TimestampMillis _, LogicalTypes.LocalTimestampMillis _ -> TimeUnit.MILLIS;
            case LogicalTypes.TimestampMicros _, LogicalTypes.LocalTimestampMicros _ -> TimeUnit.MICROS;
            case null, default -> TimeUnit.NONE;
        };
    }

    /** The schema of values that are not null. */
    static Schema nonNull(Schema schema, String column)
    {
        if (schema.getType() != Schema.Type.UNION) {
            return schema;
        }
        Schema found = null;
        for (Schema each : schema.getTypes()) {
            if (each.getType() != Schema.Type.NULL) {
                if (found != null) {
                    throw unsupported(schema, column);
                }
                found = each;
            }
        }
        if (found == null) {
            throw unsupported(schema, column);
        }
        return found;
    }

    static String lower(String name)
    {
        return name.toLowerCase(Locale.ENGLISH);
    }

    static UnsupportedSlice unsupported(Schema schema, String column)
    {
        return new UnsupportedSlice("column %s has the Avro type %s, which has no type in Trino. Leave the column out, or read the table once it is compacted".formatted(column, schema));
    }
}
