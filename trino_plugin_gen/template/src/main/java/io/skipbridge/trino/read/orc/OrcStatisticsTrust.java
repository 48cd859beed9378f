package io.skipbridge.trino.read.orc;

import io.trino.orc.metadata.OrcType;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.SortedRangeSet;
import io.trino.spi.type.DecimalType;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.Type;

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
 * Decides whether statistics may skip a stripe. They may only where they describe the very values that the engine will read.
 *
 * <p>They do not for char and bounded varchar, which are cut and padded on reading, nor where a value is coerced to another kind or scale. They may not
 * skip either for a floating-point domain that reaches both infinities, such as {@code x <> 5}: NaN satisfies it and is in no statistics. Zero has two
 * signs there, and a domain may name the one while the statistics name the other.
 */
final class OrcStatisticsTrust
{
    private OrcStatisticsTrust() {}

    static boolean usable(Domain domain, OrcType stored)
    {
        Type type = domain.getType();
        return switch (stored.getOrcTypeKind()) {
            case BOOLEAN -> type == BOOLEAN;
            case BYTE -> type == TINYINT || type == SMALLINT || type == INTEGER || type == BIGINT;
            case SHORT -> type == SMALLINT || type == INTEGER || type == BIGINT;
            case INT -> type == INTEGER || type == BIGINT;
            case LONG -> type == BIGINT;
            case FLOAT -> type == REAL && withoutNanOrZero(domain, 0L);
            case DOUBLE -> type == DOUBLE && withoutNanOrZero(domain, 0.0);
            case DATE -> type == DATE;
            case TIMESTAMP -> type instanceof TimestampType;
            case STRING, VARCHAR -> type == VARCHAR;
            case DECIMAL -> type instanceof DecimalType decimal
                    && stored.getPrecision().orElse(-1) == decimal.getPrecision()
                    && stored.getScale().orElse(-1) == decimal.getScale();
            default -> false;
        };
    }

    private static boolean withoutNanOrZero(Domain domain, Object zero)
    {
        if (!(domain.getValues() instanceof SortedRangeSet ranges) || ranges.isNone()) {
            return true;
        }
        Object negativeZero = zero instanceof Double ? (Object) (-0.0) : (Object) (long) Float.floatToRawIntBits(-0.0f);
        boolean bothInfinities = ranges.getSpan().isLowUnbounded() && ranges.getSpan().isHighUnbounded();
        return !bothInfinities && domain.includesNullableValue(zero) == domain.includesNullableValue(negativeZero);
    }
}
