package io.skipbridge.trino.read.orc;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.ReadSettings;
import io.skipbridge.trino.read.file.AheadRange;
import io.skipbridge.trino.read.file.FileReader;
import io.skipbridge.trino.read.file.FileScan;
import io.skipbridge.trino.read.file.OpenFile;
import io.skipbridge.trino.read.file.RowFormat;
import io.trino.orc.OrcCorruptionException;
import io.trino.orc.OrcDataSource;
import io.trino.orc.OrcReader;
import io.trino.orc.OrcReaderOptions;
import io.trino.orc.metadata.StripeInformation;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;

import java.io.IOException;
import java.util.List;
import java.util.Optional;

/** ORC, by Trino's own reader. A stripe belongs to the range that contains its first byte. */
public final class OrcFormat
        implements RowFormat
{
    /** Set by planners where the columns of files are found by name whatever the catalog says. */
    private static final String BY_NAME = "skipbridge.columns-by-name";
    private static final int FOOTER = 48 << 10;
    private static final int MAX_COUNTED = 1 << 20;

    private final ReadSettings settings;
    private final OrcReaderOptions options = new OrcReaderOptions();
    private final DateTimeZone timeZone;

    public OrcFormat(ReadSettings settings)
    {
        this.settings = settings;
        this.timeZone = DateTimeZone.forID(settings.orcTimeZone());
    }

    @Override
    public String spelled()
    {
        return "ORC";
    }

    @Override
    public AheadRange ahead()
    {
        return AheadRange.end(AheadRange.SMALL_FILE, FOOTER);
    }

    @Override
    public boolean damaged(IOException problem)
    {
        return problem instanceof OrcCorruptionException;
    }

    @Override
    public FileReader open(FileScan scan, OpenFile file, TupleDomain<BridgeColumnHandle> predicate)
            throws IOException
    {
        OrcDataSource source = OrcBytes.of(file.planned().path(), file.bytes(), options);
        Optional<OrcReader> opened = OrcReader.createOrcReader(source, options);
        if (opened.isEmpty()) {
            // as Hive leaves a bucket without rows
            return new Counted(0);
        }
        OrcReader reader = opened.get();
        if (scan.dataColumns().isEmpty()) {
            return new Counted(rows(reader, file));
        }
        boolean byName = settings.orcByName() || file.planned().reader().properties().getOrDefault(BY_NAME, "false").equals("true");
        OrcColumns columns = OrcColumns.of(file.planned().path(), reader, scan.dataColumns(), byName);
        OrcFileReader records = OrcFileReader.open(reader, columns, file, predicate, timeZone);
        if (source instanceof AheadOrcSource ahead) {
            ahead.expect(records.stripes());
        }
        return records;
    }

    private static long rows(OrcReader reader, OpenFile file)
    {
        List<StripeInformation> stripes = reader.getFooter().getStripes().stream().filter(stripe -> file.planned().contains(stripe.getOffset())).toList();
        file.counters().stripes(stripes.size(), 0);
        return stripes.stream().mapToLong(StripeInformation::getNumberOfRows).sum();
    }

    /** Rows without columns. */
    private static final class Counted
            implements FileReader
    {
        private long left;

        Counted(long rows)
        {
            this.left = rows;
        }

        @Override
        public int channelOf(int dataColumn)
        {
            return -1;
        }

        @Override
        public SourcePage next()
        {
            int rows = (int) Math.min(left, MAX_COUNTED);
            left -= rows;
            return rows == 0 ? null : SourcePage.create(rows);
        }
    }
}
