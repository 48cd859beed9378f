package io.skipbridge.trino.hudi;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/** Results that take longer to make than to look up. Safe for threads; all are forgotten once there are too many. */
final class Recent<K, V>
{
    private static final int KEPT = 256;

    private final Map<K, V> known = new ConcurrentHashMap<>();
    private final Function<K, V> make;

    Recent(Function<K, V> make)
    {
        this.make = make;
    }

    V get(K key)
    {
        V found = known.get(key);
        if (found == null) {
            if (known.size() >= KEPT) {
                known.clear();
            }
            found = known.computeIfAbsent(key, make);
        }
        return found;
    }
}
