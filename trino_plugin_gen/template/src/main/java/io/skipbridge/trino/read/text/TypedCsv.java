package io.skipbridge.trino.read.text;

import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import io.skipbridge.client.TypedCsvProperties;
import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.hive.formats.line.Column;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;

/**
 * CSV with types: each field is cast from its text to the declared type, as {@code TRY_CAST} of Trino does it, or {@code CAST} if a value that cannot
 * be cast shall be an error. Columns are found by their names among the names of the file's fields.
 */
final class TypedCsv
{
    private TypedCsv() {}

    /** Whether the planner asks for casts. */
    static boolean is(ReaderSpec reader)
    {
        return TypedCsvProperties.areOf(reader.properties());
    }

    static FileColumns columns(List<BridgeColumnHandle> wanted, PlannedFile file)
    {
        TypedCsvProperties properties = new TypedCsvProperties(file.reader().properties());
        List<String> fields = properties.fields();
        Optional<Slice> nulls = Optional.ofNullable(properties.nulls()).map(Slices::utf8Slice);
        Optional<String> dateFormat = Optional.ofNullable(properties.dateFormat());
        boolean fails = properties.fails();
        List<Column> columns = new ArrayList<>();
        List<Optional<UnaryOperator<Block>>> conversions = new ArrayList<>();
        List<Integer> channels = new ArrayList<>();
        for (BridgeColumnHandle column : wanted) {
            int place = fields.indexOf(column.name());
            channels.add(place < 0 ? -1 : columns.size());
            if (place < 0) {
                continue;
            }
            Casts.Cast cast = Casts.to(column.type(), properties.timestampFormats(), dateFormat).orElseThrow(() -> new TrinoException(
                    BridgeErrorCode.TYPE_MISMATCH,
                    "%s: the column %s is declared as %s, to which Trino casts no text".formatted(file.path(), column.name(), column.type().getDisplayName())));
            columns.add(new Column(column.name(), VarcharType.VARCHAR, place));
            boolean asIs = column.type().equals(VarcharType.VARCHAR) && nulls.isEmpty();
            conversions.add(asIs ? Optional.empty() : Optional.of(block -> cast(block, column, cast, nulls, fails)));
        }
        return new FileColumns(columns, conversions, channels);
    }

    private static Block cast(Block block, BridgeColumnHandle column, Casts.Cast cast, Optional<Slice> nulls, boolean fails)
    {
        Type type = column.type();
        BlockBuilder into = type.createBlockBuilder(null, block.getPositionCount());
        for (int at = 0; at < block.getPositionCount(); at++) {
            Slice text = block.isNull(at) ? null : VarcharType.VARCHAR.getSlice(block, at);
            if (text == null || (nulls.isPresent() && nulls.get().equals(text))) {
                into.appendNull();
                continue;
            }
            try {
                cast.write(into, text);
            }
            catch (RuntimeException e) {
                if (fails) {
                    throw new BadValue(at, TypedCsvProperties.problem(text.toStringUtf8(), column.name(), type.getDisplayName()), e);
                }
                into.appendNull();
            }
        }
        return into.build();
    }

    /** A value that cannot be cast, where that is an error. */
    static final class BadValue
            extends RuntimeException
    {
        private final int position;

        BadValue(int position, String message, Throwable cause)
        {
            super(message, cause);
            this.position = position;
        }

        int position()
        {
            return position;
        }
    }
}
