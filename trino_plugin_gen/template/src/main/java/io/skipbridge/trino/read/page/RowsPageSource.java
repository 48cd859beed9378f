package io.skipbridge.trino.read.page;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * A page source that opens files and reads their rows. Joins small pages of small files. Passes others on with their columns unread, behind the joined
 * ones.
 */
public abstract class RowsPageSource
        extends SplitPageSource
{
    /** The smallest page of a small file that is passed on with its columns unread. */
    private static final int LAZY_POSITIONS = 4_096;

    /** NULL of each channel, for columns that files do not have. */
    protected final Block[] nulls;
    private final PageJoiner joiner;
    private SourcePage held;

    protected RowsPageSource(List<BridgeColumnHandle> channels)
    {
        this.joiner = new PageJoiner(channels.stream().map(BridgeColumnHandle::type).toList());
        this.nulls = channels.stream().map(channel -> channel.type().createNullBlock()).toArray(Block[]::new);
    }

    /** Whether files are open. */
    protected abstract boolean isOpen();

    /** Whether {@link #open} waits for bytes that are on their way. */
    protected abstract boolean wouldWait();

    /** Completes when {@link #open} need not wait. */
    protected abstract CompletableFuture<?> opening();

    /** Opens the next files; false if there are none. */
    protected abstract boolean open()
            throws IOException;

    /** The next rows of the open files in the scan's channels; null at their end. */
    protected abstract SourcePage read()
            throws IOException;

    /** Whether the open files are one large file. Its pages are as its reader makes them. */
    protected abstract boolean isLarge();

    /** Closes the open files, if any are open. */
    protected abstract void closeOpen()
            throws IOException;

    @Override
    public final CompletableFuture<?> isBlocked()
    {
        return isFinished() || isOpen() || held != null || !joiner.isEmpty() ? NOT_BLOCKED : opening();
    }

    @Override
    protected final SourcePage nextPage()
            throws IOException
    {
        if (held != null) {
            SourcePage page = held;
            held = null;
            return page;
        }
        while (true) {
            if (!isOpen() && !joiner.isEmpty() && wouldWait()) {
                // the engine may need no more rows than these
                return joined();
            }
            if (!isOpen() && !open()) {
                end();
                return joiner.isEmpty() ? null : joined();
            }
            SourcePage page = read();
            if (page == null) {
                closeOpen();
                if (!isBlocked().isDone()) {
                    return null;
                }
                continue;
            }
            if (isLarge() || page.getPositionCount() >= LAZY_POSITIONS) {
                if (joiner.isEmpty()) {
                    return page;
                }
                held = page;
                return joined();
            }
            joiner.add(page);
            if (joiner.isFull()) {
                return joined();
            }
        }
    }

    private SourcePage joined()
    {
        return SourcePage.create(joiner.join());
    }

    /** The memory of joined pages. */
    protected final long joinedBytes()
    {
        return joiner.bytes();
    }

    @Override
    protected void closeFiles()
            throws IOException
    {
        held = null;
        closeOpen();
    }
}
