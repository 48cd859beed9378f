package io.skipbridge.trino.read.orc;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.text.Conversion;
import io.trino.orc.OrcColumn;
import io.trino.orc.OrcReader;
import io.trino.plugin.hive.coercions.TypeCoercer;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.type.Type;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;

import static io.trino.plugin.hive.orc.OrcTypeTranslator.createCoercer;

/**
 * The columns of a file that a scan reads, found by position or by name as in Trino's hive connector.
 *
 * @param channelOfColumn the channel of each data column of the scan; -1 where the file does not have it
 * @param channels what is read, in the order of the reader's channels
 */
record OrcColumns(int[] channelOfColumn, List<Channel> channels)
{
    /** Names that old versions of Hive write in place of the columns'. */
    private static final Pattern NAMELESS = Pattern.compile("_col\\d+");
    private static final List<String> TRANSACTIONAL = List.of("operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row");

    /**
     * @param read in which the reader is asked for the values
     * @param conversion from it to the table's type; empty if it is the table's
     */
    record Channel(BridgeColumnHandle column, OrcColumn stored, Type read, Optional<UnaryOperator<Block>> conversion)
    {
        static Channel of(String path, BridgeColumnHandle column, OrcColumn stored)
        {
            Optional<TypeCoercer<?, ?>> coercer = OrcDecimals.wraps(stored, column.type())
                    ? Optional.empty()
                    : createCoercer(stored.getColumnType(), stored.getNestedColumns(), column.type()).map(each -> each);
            Type asked = coercer.<Type>map(TypeCoercer::getFromType).orElse(column.type());
            Type read = OrcDecimals.readAs(column.name(), stored, asked);
            if (coercer.isEmpty()) {
                return new Channel(column, stored, read, OrcDecimals.conversion(column.name(), read, asked));
            }
            if (!read.equals(asked)) {
                throw new TrinoException(
                        BridgeErrorCode.TYPE_MISMATCH,
                        "%s: column '%s' has decimals that are wider than those of %s, beside values of other types. Declare it as the file has it, or rewrite the file".formatted(path, column.name(), column.type().getDisplayName()));
            }
            return new Channel(column, stored, read, coercer.map(each -> Conversion.of(each)));
        }
    }

    static OrcColumns of(String path, OrcReader reader, List<BridgeColumnHandle> wanted, boolean byName)
    {
        List<OrcColumn> stored = reader.getRootColumn().getNestedColumns();
        if (stored.stream().map(column -> column.getColumnName().toLowerCase(Locale.ENGLISH)).toList().equals(TRANSACTIONAL)) {
            throw new TrinoException(
                    BridgeErrorCode.UNSUPPORTED_FILE,
                    "%s is a file of a transactional table of Hive, whose rows later files may delete. Read it with Hive or with Trino's hive connector".formatted(path));
        }
        Map<String, OrcColumn> named = byName ? byName(path, stored) : Map.of();
        int[] channelOfColumn = new int[wanted.size()];
        Arrays.fill(channelOfColumn, -1);
        List<Channel> channels = new ArrayList<>();
        for (int i = 0; i < channelOfColumn.length; i++) {
            BridgeColumnHandle column = wanted.get(i);
            OrcColumn found = byName ? named.get(column.name()) : atPosition(path, stored, column);
            if (found != null) {
                channelOfColumn[i] = channels.size();
                channels.add(Channel.of(path, column, found));
            }
        }
        return new OrcColumns(channelOfColumn, channels);
    }

    private static OrcColumn atPosition(String path, List<OrcColumn> stored, BridgeColumnHandle column)
    {
        if (column.ordinal() < 0) {
            throw new TrinoException(
                    BridgeErrorCode.UNSUPPORTED_FILE,
                    "%s: the position of column '%s' is not known. Set skipbridge.orc.use-column-names=true in the catalog's file if the files have names".formatted(path, column.name()));
        }
        return column.ordinal() < stored.size() ? stored.get(column.ordinal()) : null;
    }

    private static Map<String, OrcColumn> byName(String path, List<OrcColumn> stored)
    {
        if (!stored.isEmpty() && stored.stream().allMatch(column -> NAMELESS.matcher(column.getColumnName()).matches())) {
            throw new TrinoException(
                    BridgeErrorCode.UNSUPPORTED_FILE,
                    "%s has no names of columns, only %s and so on. Set skipbridge.orc.use-column-names=false in the catalog's file".formatted(path, stored.getFirst().getColumnName()));
        }
        Map<String, OrcColumn> named = new HashMap<>();
        for (OrcColumn column : stored) {
            if (named.put(column.getColumnName().toLowerCase(Locale.ENGLISH), column) != null) {
                throw new TrinoException(
                        BridgeErrorCode.AMBIGUOUS_COLUMN,
                        "%s has several columns that spell '%s' but for case. Rewrite the file with distinct names".formatted(path, column.getColumnName()));
            }
        }
        return named;
    }
}
