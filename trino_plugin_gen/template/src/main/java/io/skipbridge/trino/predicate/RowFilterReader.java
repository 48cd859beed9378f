package io.skipbridge.trino.predicate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.trino.spi.TrinoException;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.Range;
import io.trino.spi.predicate.TupleDomain;
import io.trino.spi.predicate.ValueSet;
import io.trino.spi.type.TimestampWithTimeZoneType;
import io.trino.spi.type.Type;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

import static io.trino.spi.type.DoubleType.DOUBLE;
import static io.trino.spi.type.RealType.REAL;

/**
 * Reads a snapshot's row filter: domains of top-level columns, in the form of docs/reference/predicates.md. Any other part of a filter is refused
 * by name, because a row that a filter excludes must never be returned.
 */
public final class RowFilterReader
{
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Set<String> FILTER_FIELDS = Set.of("version", "none", "domains");
    private static final Set<String> DOMAIN_FIELDS = Set.of("column", "type", "null_allowed", "all", "none", "ranges", "values", "inclusive");
    private static final Set<String> RANGE_FIELDS = Set.of("low", "low_inclusive", "high", "high_inclusive");

    private RowFilterReader() {}

    /**
     * @param partitionKeys of the table; every other column is one of data
     * @param types by their names in SQL
     */
    public static TupleDomain<BridgeColumnHandle> read(String filter, List<BridgeColumnHandle> partitionKeys, Function<String, Type> types)
    {
        if (filter.isEmpty()) {
            return TupleDomain.all();
        }
        try {
            JsonNode json = MAPPER.readTree(filter);
            only(json, FILTER_FIELDS);
            if (json.path("version").asInt() != 1) {
                throw new IllegalArgumentException("version " + json.path("version"));
            }
            Map<BridgeColumnHandle, Domain> domains = new LinkedHashMap<>();
            for (JsonNode each : json.path("domains")) {
                only(each, DOMAIN_FIELDS);
                BridgeColumnHandle column = column(each, partitionKeys, types);
                domains.merge(column, domain(each, column.type()), Domain::intersect);
            }
            return json.path("none").asBoolean() ? TupleDomain.none() : TupleDomain.withColumnDomains(domains);
        }
        catch (JsonProcessingException | RuntimeException e) {
            throw new TrinoException(
                    BridgeErrorCode.ROW_FILTER_UNSUPPORTED,
                    "This connector cannot apply the row filter of the snapshot (%s): %s. Read the table with an engine that can".formatted(e.getMessage(), filter),
                    e);
        }
    }

    private static BridgeColumnHandle column(JsonNode json, List<BridgeColumnHandle> partitionKeys, Function<String, Type> types)
    {
        String name = json.path("column").asText();
        Type type = types.apply(json.path("type").asText());
        // a range never contains NaN, even if the original comparison is true for NaN
        if (!ValueReader.readable(type) || type == REAL || type == DOUBLE || type instanceof TimestampWithTimeZoneType) {
            throw new IllegalArgumentException("column %s has the type %s".formatted(name, type.getDisplayName()));
        }
        for (BridgeColumnHandle key : partitionKeys) {
            if (key.name().equals(name)) {
                if (!key.type().equals(type)) {
                    throw new IllegalArgumentException("partition key %s has the type %s".formatted(name, key.type().getDisplayName()));
                }
                return key;
            }
        }
        if (name.isEmpty() || name.startsWith("$")) {
            throw new IllegalArgumentException("there is no column '%s'".formatted(name));
        }
        return new BridgeColumnHandle(name, type, ColumnKind.DATA, BridgeColumnHandle.NO_POSITION);
    }

    private static Domain domain(JsonNode json, Type type)
    {
        boolean nullAllowed = json.required("null_allowed").asBoolean();
        ValueSet values;
        if (json.path("all").asBoolean()) {
            values = ValueSet.all(type);
        }
        else if (json.path("none").asBoolean()) {
            values = ValueSet.none(type);
        }
        else if (json.has("ranges")) {
            List<Range> ranges = new ArrayList<>();
            for (JsonNode each : json.get("ranges")) {
                only(each, RANGE_FIELDS);
                ranges.add(range(each, type));
            }
            values = ValueSet.copyOfRanges(type, ranges);
        }
        else {
            List<Object> listed = new ArrayList<>();
            json.required("values").forEach(value -> listed.add(value(value, type)));
            values = ValueSet.copyOf(type, listed);
            values = json.required("inclusive").asBoolean() ? values : values.complement();
        }
        return Domain.create(values, nullAllowed);
    }

    private static Range range(JsonNode json, Type type)
    {
        Range low = !json.has("low") ? Range.all(type)
                : json.path("low_inclusive").asBoolean() ? Range.greaterThanOrEqual(type, value(json.get("low"), type)) : Range.greaterThan(type, value(json.get("low"), type));
        Range high = !json.has("high") ? Range.all(type)
                : json.path("high_inclusive").asBoolean() ? Range.lessThanOrEqual(type, value(json.get("high"), type)) : Range.lessThan(type, value(json.get("high"), type));
        return low.intersect(high).orElseThrow(() -> new IllegalArgumentException("an empty range"));
    }

    private static Object value(JsonNode json, Type type)
    {
        Object value = ValueReader.read(json, type);
        if (value == null) {
            throw new IllegalArgumentException("NULL stands in a range or list");
        }
        return value;
    }

    private static void only(JsonNode json, Set<String> known)
    {
        json.fieldNames().forEachRemaining(name -> {
            if (!known.contains(name)) {
                throw new IllegalArgumentException("it holds '" + name + "'");
            }
        });
    }
}
