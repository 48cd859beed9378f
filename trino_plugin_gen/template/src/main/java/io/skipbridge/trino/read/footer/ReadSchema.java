package io.skipbridge.trino.read.footer;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.parquet.Column;
import io.trino.parquet.PrimitiveField;
import io.trino.parquet.predicate.TupleDomainParquetPredicate;
import io.trino.parquet.reader.ParquetReader;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.predicate.DiscreteValues;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Ranges;
import io.trino.spi.predicate.TupleDomain;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.io.MessageColumnIO;
import org.apache.parquet.schema.MessageType;
import org.joda.time.DateTimeZone;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.UnaryOperator;

import static io.trino.parquet.ParquetTypeUtils.constructField;
import static io.trino.parquet.ParquetTypeUtils.getColumnIO;
import static io.trino.parquet.ParquetTypeUtils.lookupColumnByName;
import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;

/**
 * How a scan reads the files of one schema: the reader's columns, the output channel that each fills, the leaves that they need, and the
 * predicate on the file's columns.
 */
public final class ReadSchema
{
    /** Values that a predicate may have in any case. */
    private static final int FEW_VALUES = 100;
    /** Trino compares a predicate's values with a row group's bounds one by one. One costs as much as decoding this many rows. */
    private static final int ROWS_PER_VALUE = 200;

    private final FileSchema file;
    private final TupleDomain<BridgeColumnHandle> predicate;
    private final DateTimeZone timeZone;
    private final List<Column> columns = new ArrayList<>();
    private final int[] columnOfChannel;
    private final List<Optional<UnaryOperator<Block>>> conversions;
    private Optional<String> refusal = Optional.empty();
    private final int[] leaves;
    private final boolean[] filtered;
    private final List<ColumnDescriptor> descriptors = new ArrayList<>();
    private final Map<List<String>, ColumnDescriptor> descriptorsByPath = new HashMap<>();
    private final Map<List<String>, ColumnDescriptor> filteredByPath = new HashMap<>();
    private final GroupPredicate exact;
    private final GroupPredicate spans;
    private final int mostValues;

    /** What row groups are asked. */
    public record GroupPredicate(TupleDomain<ColumnDescriptor> domain, TupleDomainParquetPredicate predicate) {}

    private ReadSchema(FileSchema file, List<BridgeColumnHandle> channels, TupleDomain<BridgeColumnHandle> predicate, DateTimeZone timeZone, String path)
    {
        this.file = file;
        this.predicate = predicate;
        this.timeZone = timeZone;
        this.columnOfChannel = new int[channels.size()];
        this.conversions = new ArrayList<>(Collections.nCopies(channels.size(), Optional.empty()));
        Set<ColumnDescriptor> needed = new LinkedHashSet<>();
        constructColumns(channels, path, needed);

        Map<ColumnDescriptor, Domain> domains = domains(path);
        needed.addAll(domains.keySet());
        this.leaves = needed.stream().mapToInt(file.leaves()::indexOf).sorted().toArray();
        this.filtered = new boolean[leaves.length];
        for (int i = 0; i < leaves.length; i++) {
            ColumnDescriptor descriptor = file.leaves().get(leaves[i]);
            List<String> name = Arrays.asList(descriptor.getPath());
            descriptors.add(descriptor);
            descriptorsByPath.put(name, descriptor);
            if (domains.containsKey(descriptor)) {
                filtered[i] = true;
                filteredByPath.put(name, descriptor);
            }
        }
        this.mostValues = domains.values().stream().mapToInt(ReadSchema::values).max().orElse(0);
        TupleDomain<ColumnDescriptor> all = TupleDomain.withColumnDomains(domains);
        List<ColumnDescriptor> of = List.copyOf(domains.keySet());
        this.exact = new GroupPredicate(all, new TupleDomainParquetPredicate(all, of, timeZone));
        TupleDomain<ColumnDescriptor> simple = all.simplify(FEW_VALUES);
        this.spans = mostValues <= FEW_VALUES ? exact : new GroupPredicate(simple, new TupleDomainParquetPredicate(simple, of, timeZone));
    }

    private static int values(Domain domain)
    {
        return domain.getValues().getValuesProcessor().transform(Ranges::getRangeCount, DiscreteValues::getValuesCount, _ -> 0);
    }

    /** @param timeZone in which UTC timestamps are read */
    static ReadSchema of(FileSchema file, List<BridgeColumnHandle> channels, TupleDomain<BridgeColumnHandle> predicate, DateTimeZone timeZone, String path)
    {
        return new ReadSchema(file, channels, predicate, timeZone, path);
    }

    private void constructColumns(List<BridgeColumnHandle> channels, String path, Set<ColumnDescriptor> needed)
    {
        Arrays.fill(columnOfChannel, -1);
        MessageType requested = new MessageType(
                file.message().getName(),
                channels.stream()
                        .filter(channel -> channel.isData() && file.message().containsField(channel.name()))
                        .map(channel -> file.message().getType(channel.name()))
                        .distinct()
                        .toList());
        MessageColumnIO columnIo = getColumnIO(file.message(), requested);
        for (int channel = 0; channel < columnOfChannel.length; channel++) {
            BridgeColumnHandle handle = channels.get(channel);
            if (!handle.isData()) {
                continue;
            }
            requireSure(handle.name(), path);
            if (!requested.containsField(handle.name())) {
                continue;
            }
            Optional<ReadField> field = constructField(handle.type(), lookupColumnByName(columnIo, handle.name())).map(asked -> ReadField.of(handle.name(), asked));
            if (field.isPresent()) {
                conversions.set(channel, field.get().conversion());
                refusal = refusal.or(field.get()::refusal);
                columnOfChannel[channel] = columns.size();
                columns.add(new Column(handle.name(), field.get().field()));
                for (PrimitiveField primitive : ParquetReader.getPrimitiveFields(List.of(field.get().field()))) {
                    needed.add(primitive.getDescriptor());
                }
            }
        }
    }

    private Map<ColumnDescriptor, Domain> domains(String path)
    {
        Map<ColumnDescriptor, Domain> domains = new HashMap<>();
        predicate.getDomains().orElse(Map.of()).forEach((handle, domain) -> {
            if (!handle.isData() || !file.message().containsField(handle.name()) || !file.message().getType(handle.name()).isPrimitive()) {
                return;
            }
            requireSure(handle.name(), path);
            ColumnDescriptor descriptor = file.message().getColumnDescription(new String[] {handle.name()});
            if (StatisticsTrust.usable(domain, descriptor, timeZone)) {
                domains.put(descriptor, domain);
            }
        });
        return domains;
    }

    private void requireSure(String name, String path)
    {
        if (file.ambiguous().contains(name)) {
            throw new TrinoException(
                    BridgeErrorCode.AMBIGUOUS_COLUMN,
                    "%s has several columns that spell '%s' differing in case, none exactly so. Rewrite the file with distinct names".formatted(path, name));
        }
        if (file.unsure().contains(name)) {
            throw new TrinoException(
                    BridgeErrorCode.TYPE_MISMATCH,
                    "column %s of %s has microseconds in a list or a map, or is renamed, where the table has milliseconds. Rewrite the file, or read it with Spark".formatted(name, path));
        }
    }

    public DateTimeZone timeZone()
    {
        return timeZone;
    }

    FileSchema file()
    {
        return file;
    }

    boolean isFor(TupleDomain<BridgeColumnHandle> otherPredicate)
    {
        return predicate == otherPredicate || predicate.equals(otherPredicate);
    }

    public List<Column> columns()
    {
        return columns;
    }

    /** The reader's column for an output channel, or -1 if the file has none. */
    public int columnOfChannel(int channel)
    {
        return columnOfChannel[channel];
    }

    /** What makes an output channel's values of those that the reader returns; empty if they are the same. */
    public Optional<UnaryOperator<Block>> conversion(int channel)
    {
        return conversions.get(channel);
    }

    /** Errors: NOT_SUPPORTED: a column of the file is not read as the table's type. */
    public void requireReadable()
    {
        refusal.ifPresent(reason -> {
            throw new TrinoException(NOT_SUPPORTED, reason);
        });
    }

    /** Ordinals of the leaves to read from a footer, ascending. */
    int[] leaves()
    {
        return leaves;
    }

    boolean filtered(int leaf)
    {
        return filtered[leaf];
    }

    public ColumnDescriptor descriptor(int leaf)
    {
        return descriptors.get(leaf);
    }

    public Map<List<String>, ColumnDescriptor> descriptorsByPath()
    {
        return descriptorsByPath;
    }

    public Map<List<String>, ColumnDescriptor> filteredByPath()
    {
        return filteredByPath;
    }

    /** The predicate on what files have statistics of. */
    public GroupPredicate predicate()
    {
        return exact;
    }

    /** The predicate for a row group, or a weaker one where many values would cost more than its rows. */
    public GroupPredicate predicate(long rows)
    {
        return mostValues <= rows / ROWS_PER_VALUE ? exact : spans;
    }
}
