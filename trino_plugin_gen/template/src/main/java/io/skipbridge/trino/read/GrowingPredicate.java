package io.skipbridge.trino.read;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.predicate.TupleDomain;

import java.util.function.Supplier;

/** The scan's own predicate and the dynamic filter so far. Returns the same object while the dynamic filter does not change. */
final class GrowingPredicate
        implements Supplier<TupleDomain<BridgeColumnHandle>>
{
    private final TupleDomain<BridgeColumnHandle> own;
    private final Supplier<TupleDomain<ColumnHandle>> joins;
    private TupleDomain<ColumnHandle> known = TupleDomain.all();
    private TupleDomain<BridgeColumnHandle> combined;

    GrowingPredicate(TupleDomain<BridgeColumnHandle> own, Supplier<TupleDomain<ColumnHandle>> joins)
    {
        this.own = own;
        this.joins = joins;
        this.combined = own;
    }

    @Override
    public TupleDomain<BridgeColumnHandle> get()
    {
        TupleDomain<ColumnHandle> current = joins.get();
        if (current != known && !current.isAll()) {
            known = current;
            combined = own.intersect(current.transformKeys(BridgeColumnHandle.class::cast));
        }
        return combined;
    }
}
