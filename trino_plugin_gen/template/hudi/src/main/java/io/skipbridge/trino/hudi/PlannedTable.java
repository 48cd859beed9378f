package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.UnsupportedSlice;
import org.apache.avro.Schema;
import org.apache.avro.SchemaParseException;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.schema.HoodieSchemaUtils;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.table.timeline.versioning.v1.BaseTimelineV1;
import org.apache.hudi.common.table.timeline.versioning.v1.InstantComparatorV1;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** What Hudi's reader asks about the table, as the planner saw it. Nothing of the table's own directory is read. */
final class PlannedTable
        extends HoodieTableMetaClient
{
    static final String PREFIX = "skipbridge.hudi.";
    /** All slices of a table have the same schema. */
    private static final Recent<SchemaText, HoodieSchema> SCHEMAS = new Recent<>(SchemaText::parse);

    private final transient HoodieStorage logs;
    private final transient HoodieSchema schema;
    private final String instant;
    private final transient HoodieTimeline commits;

    /** @throws UnsupportedSlice naming the property that is missing or wrong */
    PlannedTable(Map<String, String> properties, HoodieStorage logs)
    {
        this.logs = logs;
        this.storageConf = logs.getConf();
        this.basePath = new StoragePath(required(properties, PREFIX + "base_path"));
        this.metaPath = new StoragePath(basePath, METAFOLDER_NAME);
        this.tableConfig = new HoodieTableConfig();
        properties.forEach((key, value) -> {
            if (!key.startsWith(PREFIX)) {
                tableConfig.getProps().setProperty(key, value);
            }
        });
        if (tableConfig.getProps().containsKey(HoodieTableConfig.BOOTSTRAP_BASE_PATH.key())) {
            throw new UnsupportedSlice("the table was bootstrapped from files of another directory, which are not read. Rewrite the table without %s".formatted(HoodieTableConfig.BOOTSTRAP_BASE_PATH.key()));
        }
        this.instant = required(properties, PREFIX + "instant");
        this.schema = schema(required(properties, PREFIX + "schema"), tableConfig);
        this.commits = new BaseTimelineV1(
                Stream.concat(
                        list(properties.get(PREFIX + "completed")).stream().map(time -> commit(HoodieInstant.State.COMPLETED, time)),
                        list(properties.get(PREFIX + "inflight")).stream().map(time -> commit(HoodieInstant.State.INFLIGHT, time))),
                null);
    }

    private static HoodieInstant commit(HoodieInstant.State state, String time)
    {
        return new HoodieInstant(state, HoodieTimeline.DELTA_COMMIT_ACTION, time, InstantComparatorV1.REQUESTED_TIME_BASED_COMPARATOR);
    }

    private static HoodieSchema schema(String json, HoodieTableConfig config)
    {
        try {
            return SCHEMAS.get(new SchemaText(json, config.populateMetaFields()));
        }
        catch (SchemaParseException e) {
            throw new UnsupportedSlice("the table's schema cannot be read as Avro: %s. Write to the table once more, so that a new commit carries its schema".formatted(e.getMessage()), e);
        }
    }

    private record SchemaText(String json, boolean withMetaFields)
    {
        HoodieSchema parse()
        {
            HoodieSchema schema = HoodieSchema.fromAvroSchema(new Schema.Parser().setValidateDefaults(false).parse(json));
            return withMetaFields ? HoodieSchemaUtils.addMetadataFields(schema) : schema;
        }
    }

    private static String required(Map<String, String> properties, String name)
    {
        String value = properties.get(name);
        if (value == null) {
            throw new UnsupportedSlice("the planner does not tell %s. Use a planner and a plugin of one version".formatted(name));
        }
        return value;
    }

    private static List<String> list(String texts)
    {
        return texts == null || texts.isEmpty() ? List.of() : Arrays.asList(texts.split(","));
    }

    /** The table's schema, with Hudi's own fields. */
    HoodieSchema schema()
    {
        return schema;
    }

    /** Blocks of later instants are not read. */
    String instant()
    {
        return instant;
    }

    @Override
    public HoodieStorage getStorage()
    {
        return logs;
    }

    @Override
    public HoodieTimeline getCommitsTimeline()
    {
        return commits;
    }
}
