package io.skipbridge.trino.read.file;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.read.storage.FileOpener;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.predicate.TupleDomain;
import org.joda.time.DateTimeZone;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * What all files of a page source share, whatever their format.
 *
 * @param timeZone of timestamps that are kept in UTC
 * @param channels the page source's columns: data columns, partition keys and hidden ones
 * @param predicate what may be used to skip rows; it grows with the dynamic filter
 * @param reached the largest window of the scan's page sources on this node
 */
public record FileScan(
        ConnectorSession session,
        FileOpener files,
        DateTimeZone timeZone,
        List<BridgeColumnHandle> channels,
        Supplier<TupleDomain<BridgeColumnHandle>> predicate,
        AtomicInteger reached)
{
    public FileScan
    {
        channels = List.copyOf(channels);
    }

    /** The columns that have values in files, in the order of their channels. */
    public List<BridgeColumnHandle> dataColumns()
    {
        return channels.stream().filter(BridgeColumnHandle::isData).toList();
    }

    /** A scan of other columns that skips no row. */
    public FileScan unfiltered(List<BridgeColumnHandle> columns)
    {
        return new FileScan(session, files, timeZone, columns, TupleDomain::all, reached);
    }

    /** @param first how many reads are ahead at least */
    public AheadWindow newWindow(int first)
    {
        return new AheadWindow(reached, first);
    }
}
