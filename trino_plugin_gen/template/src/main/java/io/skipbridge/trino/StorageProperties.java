package io.skipbridge.trino;

import io.skipbridge.trino.read.storage.Store;
import io.trino.spi.TrinoException;

import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

import static io.skipbridge.trino.BridgeErrorCode.INVALID_CONFIGURATION;

/**
 * The catalog's properties of storage, under the names that Trino's own connectors give them in any release. What this connector does not read is
 * refused by name and with the reason.
 *
 * @param stores those that are on, beside local files
 * @param properties of Trino's file systems, without those that switch stores on
 * @param cache properties of Trino's file system cache, if it is on
 */
record StorageProperties(Set<Store> stores, Map<String, String> properties, Optional<Map<String, String>> cache)
{
    private static final List<String> LOCAL_ENABLED = List.of("fs.native-local.enabled", "fs.local.enabled");
    private static final List<String> PREFIXES = List.of("fs.", "local.", "jmx.base-name");

    StorageProperties
    {
        stores = Set.copyOf(stores);
        properties = Map.copyOf(properties);
        cache = cache.map(Map::copyOf);
    }

    /** Whether the property is one of storage. */
    static boolean covers(String name)
    {
        return PREFIXES.stream().anyMatch(name::startsWith) || Store.ofProperty(name).isPresent();
    }

    static StorageProperties parse(Map<String, String> all)
    {
        Map<Store, Boolean> switches = new EnumMap<>(Store.class);
        Map<String, String> properties = new TreeMap<>();
        Map<String, String> cache = new TreeMap<>();
        boolean cached = false;
        for (Map.Entry<String, String> property : all.entrySet()) {
            String name = property.getKey();
            String value = property.getValue();
            Optional<Store> switched = Set.of(Store.values()).stream().filter(store -> store.switches().contains(name)).findFirst();
            if (switched.isPresent()) {
                boolean on = BridgeConfig.bool(name, value);
                Boolean other = switches.put(switched.get(), on);
                if (other != null && other != on) {
                    throw invalid("%s are true and false: they mean the same, set one".formatted(String.join(" and ", switched.get().switches())));
                }
            }
            else if (LOCAL_ENABLED.contains(name)) {
                if (!BridgeConfig.bool(name, value)) {
                    throw invalid("%s is false, but the connector always reads tables of file://. Remove the property".formatted(name));
                }
            }
            else if (name.equals("local.location")) {
                if (!value.strip().equals("/")) {
                    throw invalid("local.location is '%s', but the connector reads file:// locations as they are. Remove the property, or set it to /".formatted(value));
                }
            }
            else if (name.equals("fs.alluxio.enabled")) {
                if (BridgeConfig.bool(name, value)) {
                    throw invalid("fs.alluxio.enabled: the planner cannot list Alluxio. Remove the property; Trino's hive connector reads such tables");
                }
            }
            else if (name.equals("fs.cache.enabled")) {
                cached = BridgeConfig.bool(name, value);
            }
            else if (name.startsWith("fs.cache.")) {
                cache.put(name, value);
            }
            else {
                properties.put(name, value);
            }
        }
        // earlier releases of this connector needed no switch for S3
        if (properties.keySet().stream().anyMatch(name -> Store.ofProperty(name).equals(Optional.of(Store.S3)))) {
            switches.putIfAbsent(Store.S3, true);
        }
        Set<Store> stores = EnumSet.noneOf(Store.class);
        switches.forEach((store, on) -> {
            if (on) {
                stores.add(store);
            }
        });
        properties.keySet().forEach(name -> refuseUnused(name, stores));
        if (!cached && !cache.isEmpty()) {
            throw invalid("%s is set, but the cache is off. Remove it, or set fs.cache.enabled to true".formatted(cache.keySet().iterator().next()));
        }
        if (cached) {
            refuseUnused("fs.cache.enabled", stores);
        }
        return new StorageProperties(stores, properties, cached ? Optional.of(cache) : Optional.empty());
    }

    private static void refuseUnused(String name, Set<Store> stores)
    {
        Optional<Store> store = Store.ofProperty(name);
        if (store.isPresent() && !stores.contains(store.get())) {
            throw invalid("%s is set, but %s is off. Remove it, or set %s to true".formatted(name, store.get().title(), store.get().switches().getFirst()));
        }
        if (stores.isEmpty()) {
            throw invalid("%s is set, but the catalog reads local files only. Remove it, or set one of %s to true".formatted(
                    name, String.join(", ", Set.of(Store.values()).stream().map(each -> each.switches().getFirst()).sorted().toList())));
        }
    }

    private static TrinoException invalid(String message)
    {
        return new TrinoException(INVALID_CONFIGURATION, message);
    }

    /** Omits the values, because some are secrets. */
    @Override
    public String toString()
    {
        return "StorageProperties" + stores.stream().sorted().toList() + properties.keySet().stream().sorted().toList() + cache.map(Map::keySet);
    }
}
