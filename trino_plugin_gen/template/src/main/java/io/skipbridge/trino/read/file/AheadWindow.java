package io.skipbridge.trino.read.file;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * How many reads one page source keeps ahead. It starts small and doubles whenever a whole window was read and the page source still had to wait.
 * So a scan that ends early has read little in vain. Later page sources of the scan start with half of what earlier ones reached.
 */
public final class AheadWindow
{
    private static final int MAX = 64;

    private final AtomicInteger reached;
    private int size;
    private int sinceGrown;

    /** @param first how many reads are ahead at least */
    AheadWindow(AtomicInteger reached, int first)
    {
        this.reached = reached;
        this.size = Math.max(first, reached.get() / 2);
    }

    public int size()
    {
        return size;
    }

    public void took(boolean waited)
    {
        sinceGrown++;
        if (waited && sinceGrown >= size && size < MAX) {
            size *= 2;
            sinceGrown = 0;
            reached.accumulateAndGet(size, Math::max);
        }
    }
}
