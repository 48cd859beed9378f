package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.RowPages;
import io.trino.spi.Page;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.common.util.collection.ClosableIterator;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.NoSuchElementException;

/** The rows of a Parquet file as records, one page at a time. */
final class PageRecords
        implements ClosableIterator<IndexedRecord>
{
    private final BaseColumns columns;
    private final RowPages pages;
    private Page page;
    private int position;
    private boolean finished;

    PageRecords(BaseColumns columns, RowPages pages)
    {
        this.columns = columns;
        this.pages = pages;
    }

    @Override
    public boolean hasNext()
    {
        while (!finished && (page == null || position == page.getPositionCount())) {
            try {
                page = pages.next();
            }
            catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            position = 0;
            finished = page == null;
        }
        return !finished;
    }

    @Override
    public IndexedRecord next()
    {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return new PageRecord(columns, page, position++);
    }

    @Override
    public void close()
    {
        finished = true;
        page = null;
        try {
            pages.close();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
