package io.skipbridge.trino.hudi;

import org.apache.hudi.common.util.Option;
import org.apache.hudi.storage.StorageConfiguration;

import java.util.HashMap;
import java.util.Map;

/** Settings of a storage: none but those that Hudi sets itself. */
final class PlainConfiguration
        extends StorageConfiguration<Map<String, String>>
{
    private final HashMap<String, String> settings = new HashMap<>();

    @Override
    public StorageConfiguration<Map<String, String>> newInstance()
    {
        return new PlainConfiguration();
    }

    @Override
    public Map<String, String> unwrap()
    {
        return settings;
    }

    @Override
    public Map<String, String> unwrapCopy()
    {
        return new HashMap<>(settings);
    }

    @Override
    public void set(String key, String value)
    {
        settings.put(key, value);
    }

    @Override
    public Option<String> getString(String key)
    {
        return Option.ofNullable(settings.get(key));
    }

    @Override
    public StorageConfiguration<Map<String, String>> getInline()
    {
        return this;
    }
}
