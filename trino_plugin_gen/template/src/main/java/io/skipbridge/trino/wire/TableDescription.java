package io.skipbridge.trino.wire;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * One table as the planner describes it: data columns, then partition keys.
 *
 * @param view the JSON of a view created by Trino. A view has no other fields but comment and owner
 * @param readVersion as in {@link PlanRequest}
 * @param tableFormat what keeps the table's files: directory, hudi, segments; empty: not told
 */
public record TableDescription(
        String schemaName,
        String tableName,
        List<ColumnDescription> columns,
        OptionalDouble rowCount,
        String location,
        String format,
        Optional<String> comment,
        Optional<String> view,
        Optional<String> owner,
        String snapshotId,
        String readVersion,
        String tableFormat)
{
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Names and types of all columns and partition keys as JSON; with it the planner answers under these, or not at all. */
    public String compiledColumns()
    {
        try {
            return JSON.writeValueAsString(Map.of("columns", pairs(false), "keys", pairs(true)));
        }
        catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    private List<List<String>> pairs(boolean keys)
    {
        return columns.stream().filter(column -> column.partitionKey() == keys).map(column -> List.of(column.name(), column.hiveType())).toList();
    }

    static TableDescription read(BinaryReader reader)
    {
        String[] texts = {"", "", "", "", "", "", "", null, null, null, "", "", ""};
        List<ColumnDescription> columns = List.of();
        OptionalDouble rowCount = OptionalDouble.empty();
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            if (id == 3) {
                if (reader.is(WireType.LIST)) {
                    columns = reader.structs(ColumnDescription::read);
                }
            }
            else if (id == 4) {
                if (reader.is(WireType.DOUBLE)) {
                    rowCount = OptionalDouble.of(reader.f64());
                }
            }
            else if (reader.is(WireType.STRING)) {
                String text = reader.string();
                if (id < texts.length) {
                    texts[id] = text;
                }
            }
        }
        return new TableDescription(
                texts[1],
                texts[2],
                columns,
                rowCount,
                texts[5],
                texts[6],
                Optional.ofNullable(texts[7]),
                Optional.ofNullable(texts[8]),
                Optional.ofNullable(texts[9]),
                texts[10],
                texts[11],
                texts[12]);
    }
}
