package io.skipbridge.trino.read.footer;

import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.SortedRangeSet;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.Type;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DateLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.IntLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.StringLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.joda.time.DateTimeZone;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.BooleanType.BOOLEAN;
import static io.trino.spi.type.DateType.DATE;
import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.RealType.REAL;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarcharType.VARCHAR;

/**
 * Decides whether statistics may skip a row group. They may only where they describe the very values that the engine will read.
 *
 * <p>They do not for char and bounded varchar, which are cut and padded on reading; nor for INT96, unsigned integers, rescaled decimals,
 * timestamps of another zone, or a column read as another kind of number. They may not skip either for a floating-point domain that reaches both
 * infinities, such as {@code x <> 5}: NaN satisfies it and is in no statistics.
 */
final class StatisticsTrust
{
    private StatisticsTrust() {}

    static boolean usable(Domain domain, ColumnDescriptor column, DateTimeZone timeZone)
    {
        if (column.getPath().length != 1 || column.getMaxRepetitionLevel() > 0) {
            return false;
        }
        Type type = domain.getType();
        LogicalTypeAnnotation annotation = column.getPrimitiveType().getLogicalTypeAnnotation();
        return switch (column.getPrimitiveType().getPrimitiveTypeName()) {
            case BOOLEAN -> type == BOOLEAN;
            case INT32 -> integral(type, annotation)
                    || (type == DATE && annotation instanceof DateLogicalTypeAnnotation)
                    || sameDecimal(type, annotation);
            case INT64 -> (type == BIGINT && integral(type, annotation))
                    || sameDecimal(type, annotation)
                    || (type instanceof TimestampType timestamp && timestamp.isShort() && unmoved(annotation, timeZone));
            case FLOAT -> type == REAL && !reachesBothInfinities(domain);
            case DOUBLE -> type == DOUBLE && !reachesBothInfinities(domain);
            case BINARY -> (type == VARCHAR && (annotation == null || annotation instanceof StringLogicalTypeAnnotation)) || sameDecimal(type, annotation);
            case FIXED_LEN_BYTE_ARRAY -> sameDecimal(type, annotation);
            case INT96 -> false;
        };
    }

    /** Whether timestamps are read unchanged. UTC timestamps are moved to the reader's zone, but their bounds are not. */
    private static boolean unmoved(LogicalTypeAnnotation annotation, DateTimeZone timeZone)
    {
        return annotation instanceof TimestampLogicalTypeAnnotation timestamp && (!timestamp.isAdjustedToUTC() || timeZone.equals(DateTimeZone.UTC));
    }

    private static boolean integral(Type type, LogicalTypeAnnotation annotation)
    {
        boolean signed = annotation == null || (annotation instanceof IntLogicalTypeAnnotation integer && integer.isSigned());
        return signed && (type == BIGINT || type == INTEGER || type == SMALLINT || type == TINYINT);
    }

    private static boolean sameDecimal(Type type, LogicalTypeAnnotation annotation)
    {
        return type instanceof DecimalType decimal
                && annotation instanceof DecimalLogicalTypeAnnotation found
                && found.getPrecision() == decimal.getPrecision()
                && found.getScale() == decimal.getScale();
    }

    private static boolean reachesBothInfinities(Domain domain)
    {
        return domain.getValues() instanceof SortedRangeSet ranges
                && !ranges.isNone()
                && ranges.getSpan().isLowUnbounded()
                && ranges.getSpan().isHighUnbounded();
    }
}
