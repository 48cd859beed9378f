package io.skipbridge.trino.metadata;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.CatalogSchemaName;
import io.trino.spi.connector.ConnectorViewDefinition;
import io.trino.spi.connector.ConnectorViewDefinition.ViewColumn;
import io.trino.spi.type.TypeId;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

import static io.trino.spi.StandardErrorCode.INVALID_VIEW;

/** Reads the JSON that Trino stores for a view in the metastore. */
final class ViewReader
{
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private ViewReader() {}

    static ConnectorViewDefinition read(TableDescription table)
    {
        String name = table.schemaName() + "." + table.tableName();
        try {
            JsonNode json = MAPPER.readTree(table.view().orElseThrow());
            List<ViewColumn> columns = new ArrayList<>();
            for (JsonNode column : json.path("columns")) {
                columns.add(new ViewColumn(column.path("name").asText(), TypeId.of(column.path("type").asText()), text(column, "comment")));
            }
            List<CatalogSchemaName> path = new ArrayList<>();
            for (JsonNode element : json.path("path")) {
                path.add(new CatalogSchemaName(element.path("catalogName").asText(), element.path("schemaName").asText()));
            }
            boolean invoker = json.path("runAsInvoker").asBoolean();
            return new ConnectorViewDefinition(
                    text(json, "originalSql").orElseThrow(() -> new IllegalArgumentException("it has no SQL")),
                    text(json, "catalog"),
                    text(json, "schema"),
                    columns,
                    text(json, "comment").or(table::comment),
                    invoker ? Optional.empty() : table.owner().or(() -> text(json, "owner")),
                    invoker,
                    path);
        }
        catch (JsonProcessingException | RuntimeException e) {
            throw new TrinoException(INVALID_VIEW, "View %s cannot be read: %s. Create it again with Trino".formatted(name, e.getMessage()), e);
        }
    }

    private static Optional<String> text(JsonNode json, String field)
    {
        return Optional.ofNullable(json.path(field).textValue());
    }
}
