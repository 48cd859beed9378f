package io.skipbridge.trino.read.orc;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.OpenFile;
import io.trino.memory.context.AggregatedMemoryContext;
import io.trino.orc.NameBasedFieldMapper;
import io.trino.orc.OrcPredicate;
import io.trino.orc.OrcReader;
import io.trino.orc.OrcRecordReader;
import io.trino.orc.TupleDomainOrcPredicate;
import io.trino.orc.TupleDomainOrcPredicate.TupleDomainOrcPredicateBuilder;
import io.trino.orc.metadata.ColumnMetadata;
import io.trino.orc.metadata.StripeInformation;
import io.trino.orc.metadata.statistics.ColumnStatistics;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.type.Type;
import org.joda.time.DateTimeZone;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

import static io.trino.memory.context.AggregatedMemoryContext.newSimpleAggregatedMemoryContext;
import static io.trino.orc.OrcReader.fullyProjectedLayout;

/** Reads a file's stripes and row groups whose statistics do not contradict the predicate. */
final class OrcFileReader
        implements FileReader
{
    /** Small files give one page, large ones a first page that is not large. */
    private static final int FIRST_ROWS = 1_024;
    private static final int DOMAIN_COMPACTION_THRESHOLD = 1_000;

    private final OrcColumns columns;
    private final AggregatedMemoryContext memory;
    private final OrcRecordReader reader;
    private final List<StripeInformation> stripes;

    private OrcFileReader(OrcColumns columns, AggregatedMemoryContext memory, OrcRecordReader reader, List<StripeInformation> stripes)
    {
        this.columns = columns;
        this.memory = memory;
        this.reader = reader;
        this.stripes = stripes;
    }

    static OrcFileReader open(OrcReader reader, OrcColumns columns, OpenFile file, TupleDomain<BridgeColumnHandle> predicate, DateTimeZone timeZone)
            throws IOException
    {
        AggregatedMemoryContext memory = newSimpleAggregatedMemoryContext();
        List<OrcColumns.Channel> channels = columns.channels();
        List<Type> types = channels.stream().map(OrcColumns.Channel::read).toList();
        SelectingPredicate selecting = new SelectingPredicate(trusted(columns, predicate), reader.getFooter().getFileStats().isPresent());
        OrcRecordReader records = reader.createRecordReader(
                channels.stream().map(OrcColumns.Channel::stored).toList(),
                types,
                Collections.nCopies(types.size(), fullyProjectedLayout()),
                false,
                selecting,
                file.planned().start(),
                file.planned().length(),
                timeZone,
                memory,
                FIRST_ROWS,
                file.failure()::apply,
                NameBasedFieldMapper::create);
        List<StripeInformation> inRange = reader.getFooter().getStripes().stream().filter(stripe -> file.planned().contains(stripe.getOffset())).toList();
        List<StripeInformation> read = selecting.selected(inRange);
        selecting.opened = true;
        file.counters().stripes(inRange.size(), read.size());
        return new OrcFileReader(columns, memory, records, read);
    }

    /** The predicate on those columns whose statistics are of the very values that are read. */
    private static OrcPredicate trusted(OrcColumns columns, TupleDomain<BridgeColumnHandle> predicate)
    {
        Map<BridgeColumnHandle, Domain> domains = predicate.simplify(DOMAIN_COMPACTION_THRESHOLD).getDomains().orElseThrow();
        TupleDomainOrcPredicateBuilder builder = TupleDomainOrcPredicate.builder().setDomainCompactionThreshold(DOMAIN_COMPACTION_THRESHOLD);
        for (OrcColumns.Channel channel : columns.channels()) {
            Domain domain = domains.get(channel.column());
            if (domain != null && OrcStatisticsTrust.usable(domain, channel.stored().getColumnType())) {
                builder.addColumn(channel.stored().getColumnId(), domain);
            }
        }
        return builder.build();
    }

    /** Those that are read, in their order. */
    List<StripeInformation> stripes()
    {
        return stripes;
    }

    @Override
    public int channelOf(int dataColumn)
    {
        return columns.channelOfColumn()[dataColumn];
    }

    @Override
    public Optional<UnaryOperator<Block>> conversionOf(int dataColumn)
    {
        int channel = channelOf(dataColumn);
        return channel < 0 ? Optional.empty() : columns.channels().get(channel).conversion();
    }

    @Override
    public SourcePage next()
            throws IOException
    {
        return reader.nextPage();
    }

    @Override
    public long memoryBytes()
    {
        return memory.getBytes();
    }

    @Override
    public void close()
            throws IOException
    {
        reader.close();
    }

    /** Notes what the reader skips while it opens a file: it asks for the file first, if that has statistics, then for each stripe of the range; later for row groups. */
    private static final class SelectingPredicate
            implements OrcPredicate
    {
        private final OrcPredicate predicate;
        private boolean asksForFile;
        private boolean file = true;
        private boolean opened;
        private final List<Boolean> stripes = new ArrayList<>();

        SelectingPredicate(OrcPredicate predicate, boolean asksForFile)
        {
            this.predicate = predicate;
            this.asksForFile = asksForFile;
        }

        @Override
        public boolean matches(long rows, ColumnMetadata<ColumnStatistics> statistics)
        {
            boolean matches = predicate.matches(rows, statistics);
            if (!opened) {
                if (asksForFile) {
                    file = matches;
                }
                else {
                    stripes.add(matches);
                }
                asksForFile = false;
            }
            return matches;
        }

        /** The stripes that are read; all of them if some have no statistics to ask for. */
        List<StripeInformation> selected(List<StripeInformation> inRange)
        {
            if (!file) {
                return List.of();
            }
            boolean asked = stripes.size() == inRange.size();
            return IntStream.range(0, inRange.size()).filter(i -> !asked || stripes.get(i)).mapToObj(inRange::get).toList();
        }
    }
}
