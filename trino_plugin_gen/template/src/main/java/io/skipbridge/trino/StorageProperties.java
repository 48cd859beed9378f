package io.skipbridge.trino;

import io.trino.spi.TrinoException;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

import static io.skipbridge.trino.BridgeErrorCode.INVALID_CONFIGURATION;

/**
 * The catalog's properties of storage, under the names that Trino's own connectors give them in any release. What this connector does not read is
 * refused by name and with the reason.
 *
 * @param s3 properties of the S3 file system; empty if the catalog does not read S3
 */
record StorageProperties(Optional<Map<String, String>> s3)
{
    private static final List<String> S3_ENABLED = List.of("fs.native-s3.enabled", "fs.s3.enabled");
    private static final List<String> LOCAL_ENABLED = List.of("fs.native-local.enabled", "fs.local.enabled");
    private static final Map<String, String> NOT_READ = Map.of(
            "fs.hadoop.enabled", "HDFS",
            "fs.native-gcs.enabled", "Google Cloud Storage",
            "fs.gcs.enabled", "Google Cloud Storage",
            "fs.native-azure.enabled", "Azure",
            "fs.azure.enabled", "Azure",
            "fs.alluxio.enabled", "Alluxio");
    private static final List<String> OF_NOT_READ = List.of("gcs.", "azure.", "hive.hdfs.", "hive.config.resources");

    /** Whether the property is one of storage. */
    static boolean covers(String name)
    {
        return name.startsWith("fs.") || name.startsWith("s3.") || name.startsWith("local.") || OF_NOT_READ.stream().anyMatch(name::startsWith);
    }

    static StorageProperties parse(Map<String, String> properties)
    {
        Map<String, String> s3 = new TreeMap<>();
        Optional<Boolean> s3Enabled = Optional.empty();
        for (Map.Entry<String, String> property : properties.entrySet()) {
            String name = property.getKey();
            String value = property.getValue();
            if (name.startsWith("s3.")) {
                s3.put(name, value);
            }
            else if (S3_ENABLED.contains(name)) {
                s3Enabled = Optional.of(BridgeConfig.bool(name, value));
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
            else if (NOT_READ.containsKey(name)) {
                if (BridgeConfig.bool(name, value)) {
                    throw invalid("%s: the connector reads S3 and local files, not %s. Remove the property; Trino's hive connector reads such tables".formatted(name, NOT_READ.get(name)));
                }
            }
            else if (name.equals("fs.cache.enabled")) {
                if (BridgeConfig.bool(name, value)) {
                    throw invalid("fs.cache.enabled: the connector does not use Trino's file system cache. Remove the property");
                }
            }
            else {
                throw invalid("%s: the connector reads S3 and local files only, without Trino's file system cache. Remove the property".formatted(name));
            }
        }
        if (s3Enabled.isPresent() && !s3Enabled.get() && !s3.isEmpty()) {
            throw invalid("%s is set, but S3 is off. Remove it, or set fs.native-s3.enabled to true".formatted(s3.keySet().iterator().next()));
        }
        return new StorageProperties(s3.isEmpty() && !s3Enabled.orElse(false) ? Optional.empty() : Optional.of(Map.copyOf(s3)));
    }

    private static TrinoException invalid(String message)
    {
        return new TrinoException(INVALID_CONFIGURATION, message);
    }

    /** Omits the values, because some are secrets. */
    @Override
    public String toString()
    {
        return s3.map(properties -> "StorageProperties" + properties.keySet().stream().sorted().toList()).orElse("StorageProperties[]");
    }
}
