package io.skipbridge.trino.read.storage;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** A store that Trino's own file systems read. */
public enum Store
{
    S3("S3", "s3", List.of("s3", "s3a", "s3n"), List.of("s3."), "io.trino.filesystem.s3.S3FileSystemModule"),
    GCS("Google Cloud Storage", "gcs", List.of("gs"), List.of("gcs."), "io.trino.filesystem.gcs.GcsFileSystemModule"),
    AZURE("Azure", "azure", List.of("abfs", "abfss", "wasb", "wasbs"), List.of("azure."), "io.trino.filesystem.azure.AzureFileSystemModule"),
    HDFS(
            "HDFS",
            "hadoop",
            List.of("hdfs", "viewfs"),
            List.of("hive.hdfs.", "hive.config.resources", "hive.dfs.", "hive.dfs-timeout", "hive.fs.", "hive.s3.", "hive.gcs.", "hive.azure."),
            "io.trino.filesystem.manager.FileSystemModule");

    private final String title;
    private final String name;
    private final List<String> schemes;
    private final List<String> properties;
    private final String module;

    Store(String title, String name, List<String> schemes, List<String> properties, String module)
    {
        this.title = title;
        this.name = name;
        this.schemes = schemes;
        this.properties = properties;
        this.module = module;
    }

    /** The store of a file's URI. */
    public static Optional<Store> of(String uri)
    {
        return Stream.of(values()).filter(store -> store.schemes.stream().anyMatch(scheme -> uri.startsWith(scheme + "://"))).findFirst();
    }

    /** The store that a property configures. */
    public static Optional<Store> ofProperty(String property)
    {
        return Stream.of(values()).filter(store -> store.properties.stream().anyMatch(property::startsWith)).findFirst();
    }

    public String title()
    {
        return title;
    }

    /** The name in the options of {@code skipbridge plugin build}. */
    String option()
    {
        return this == HDFS ? "hdfs" : name;
    }

    /** The names of the property that switches the store on, in all releases of Trino; the first is the older one. */
    public List<String> switches()
    {
        return this == HDFS ? List.of("fs.hadoop.enabled") : List.of("fs.native-%s.enabled".formatted(name), "fs.%s.enabled".formatted(name));
    }

    /** The class that the plugin has if it was built to read the store. */
    String module()
    {
        return module;
    }
}
