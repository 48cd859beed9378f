package io.skipbridge.trino.suites;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.trino.spi.type.ArrayType;
import io.trino.spi.type.MapType;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;
import io.trino.testing.MaterializedResult;
import io.trino.testing.MaterializedRow;
import io.trino.testing.QueryRunner;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import static java.util.stream.Collectors.joining;

/**
 * Makes tables that a suite wants to write. The connector only reads: as in a real lake, somebody else writes the files.
 * Rows are computed by Trino and sent to the test that runs these suites, which writes, registers and indexes them.
 */
final class TableMaker
{
    private static final Pattern CREATE = Pattern.compile("CREATE TABLE (\\w+) \\((\\w+ .*)\\)");
    private static final Pattern INSERT = Pattern.compile("INSERT INTO (\\w+) (.*)");
    private static final Pattern DROP = Pattern.compile("DROP TABLE (?:IF EXISTS )?(\\w+)");
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Columns as "name type", and the names of those that are partition keys. */
    private record Shape(List<String> columns, List<String> keys) {}

    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Map<String, Shape> declared = new ConcurrentHashMap<>();

    void declare(String table, List<String> columns, List<String> keys)
    {
        declared.put(table, new Shape(columns, keys));
    }

    /** Does what a statement of a suite says; a CREATE TABLE declares one column. */
    void update(QueryRunner runner, String sql)
    {
        Matcher create = CREATE.matcher(sql);
        Matcher insert = INSERT.matcher(sql);
        Matcher drop = DROP.matcher(sql);
        if (create.matches()) {
            declare(create.group(1), List.of(create.group(2)), List.of());
        }
        else if (insert.matches()) {
            insert(runner, insert.group(1), insert.group(2));
        }
        else if (drop.matches()) {
            send("DELETE", Map.of("schema", schema(runner), "table", drop.group(1)));
        }
        else {
            throw new IllegalArgumentException("not a statement that makes a table: " + sql);
        }
    }

    private void insert(QueryRunner runner, String table, String source)
    {
        Shape shape = declared.get(table);
        List<String> names = shape.columns().stream().map(column -> column.split(" ", 2)[0]).toList();
        String selected = shape.columns().stream()
                .map(column -> column.split(" ", 2))
                .map(column -> "CAST(%s AS %s) %s".formatted(column[0], column[1], column[0]))
                .collect(joining(", "));
        make(runner, table, "SELECT %s FROM (%s) t(%s)".formatted(selected, source, String.join(", ", names)), shape.keys());
    }

    void make(QueryRunner runner, String table, String query, List<String> keys)
    {
        MaterializedResult result = runner.execute(query);
        List<Map<String, String>> columns = new ArrayList<>();
        for (int i = 0; i < result.getTypes().size(); i++) {
            columns.add(Map.of("name", result.getColumnNames().get(i).toLowerCase(Locale.ROOT), "type", hiveType(result.getTypes().get(i))));
        }
        send("POST", Map.of(
                "schema", schema(runner),
                "table", table,
                "columns", columns,
                "keys", keys,
                "rows", result.getMaterializedRows().stream().map(row -> plain(row)).toList()));
    }

    private static String schema(QueryRunner runner)
    {
        return runner.getDefaultSession().getSchema().orElseThrow();
    }

    private static String hiveType(Type type)
    {
        return switch (type) {
            case RowType row -> row.getFields().stream()
                    .map(field -> field.getName().orElseThrow() + ":" + hiveType(field.getType()))
                    .collect(joining(",", "struct<", ">"));
            case ArrayType array -> "array<%s>".formatted(hiveType(array.getElementType()));
            case MapType map -> "map<%s,%s>".formatted(hiveType(map.getKeyType()), hiveType(map.getValueType()));
            default -> switch (type.getDisplayName()) {
                case "integer" -> "int";
                case "real" -> "float";
                case "varchar" -> "string";
                case String name -> name;
            };
        };
    }

    /** Rows and arrays become lists, maps become lists of pairs. */
    private static Object plain(Object value)
    {
        return switch (value) {
            case null -> null;
            case MaterializedRow row -> row.getFields().stream().map(TableMaker::plain).collect(Collectors.toCollection(ArrayList::new));
            case List<?> list -> list.stream().map(TableMaker::plain).collect(Collectors.toCollection(ArrayList::new));
            case Map<?, ?> map -> map.entrySet().stream().map(entry -> List.of(plain(entry.getKey()), plain(entry.getValue()))).toList();
            default -> value;
        };
    }

    private void send(String method, Map<String, ?> body)
    {
        try {
            HttpResponse<String> answer = client.send(
                    HttpRequest.newBuilder(URI.create(Suites.setting("tables")))
                            .method(method, HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body)))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException(answer.body());
            }
        }
        catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
