package io.skipbridge.trino.read.text;

import io.trino.metastore.HiveType;
import io.trino.plugin.hive.HiveTimestampPrecision;
import io.trino.plugin.hive.coercions.CoercionUtils;
import io.trino.plugin.hive.coercions.CoercionUtils.CoercionContext;
import io.trino.plugin.hive.coercions.TypeCoercer;
import io.trino.plugin.hive.util.HiveCoercionPolicy;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeManager;

import java.util.Optional;
import java.util.function.UnaryOperator;

import static io.trino.plugin.hive.util.HiveTypeTranslator.toHiveType;
import static io.trino.plugin.hive.util.HiveTypeUtil.getType;
import static io.trino.spi.type.VarbinaryType.VARBINARY;

/**
 * The conversion of a column from the type that a partition declares to that of the table: the one of Trino's hive connector.
 *
 * @param stored the type in which files are read
 * @param function from that type to the table's; empty if values stay as they are
 */
public record Conversion(Type stored, Optional<UnaryOperator<Block>> function)
{
    /** Of timestamps: that of the connector's columns. */
    private static final HiveTimestampPrecision PRECISION = HiveTimestampPrecision.MICROSECONDS;

    static Conversion none(Type type)
    {
        return new Conversion(type, Optional.empty());
    }

    /** Empty if Trino does not convert the one type to the other, or has no such type. */
    static Optional<Conversion> of(String declared, Type wanted, TypeManager types, String serde)
    {
        if (declared.isEmpty()) {
            return Optional.empty();
        }
        HiveType from = toHiveType(types.fromSqlType(declared));
        HiveType to = toHiveType(wanted);
        if (from.equals(to)) {
            return Optional.of(none(wanted));
        }
        if (!HiveCoercionPolicy.canCoerce(types, from, to, PRECISION)) {
            return Optional.empty();
        }
        CoercionContext context = new CoercionContext(PRECISION, CoercionUtils.extractHiveStorageFormat(serde));
        Optional<TypeCoercer<?, ?>> coercer = CoercionUtils.createCoercer(types, from, to, context).map(each -> each);
        return Optional.of(new Conversion(
                coercer.<Type>map(TypeCoercer::getFromType).orElseGet(() -> getType(from, types, PRECISION)),
                coercer.map(each -> of(each))));
    }

    /** Trino's coercer of binaries takes other bytes than the value's where the value does not begin the block. */
    public static UnaryOperator<Block> of(TypeCoercer<?, ?> coercer)
    {
        if (coercer.getFromType() != VARBINARY) {
            return coercer::apply;
        }
        return block -> {
            BlockBuilder all = coercer.getToType().createBlockBuilder(null, block.getPositionCount());
            for (int i = 0; i < block.getPositionCount(); i++) {
                Block one = coercer.apply(block.getSingleValueBlock(i));
                all.append(one.getUnderlyingValueBlock(), one.getUnderlyingValuePosition(0));
            }
            return all.build();
        };
    }
}
