package io.skipbridge.trino.predicate;

import io.skipbridge.client.JsonText;
import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Writes the document of docs/reference/predicates.md: the conjunction of domains and expressions, and the names of the parts left out. */
public final class PredicateWriter
{
    private PredicateWriter() {}

    /** The empty text stands for no predicate. */
    public static String write(TupleDomain<BridgeColumnHandle> domains, List<String> conjuncts)
    {
        if (domains.isAll() && conjuncts.isEmpty()) {
            return "";
        }
        JsonText json = new JsonText().open('{').name("version").raw("1").field("none", domains.isNone());
        List<String> written = new ArrayList<>();
        List<String> dropped = new ArrayList<>();
        Map<String, Map.Entry<BridgeColumnHandle, Domain>> byName = new TreeMap<>();
        domains.getDomains().orElse(Map.of()).forEach((column, domain) -> byName.put(column.name(), Map.entry(column, domain)));
        byName.forEach((name, entry) -> {
            try {
                written.add(DomainWriter.write(entry.getKey(), entry.getValue()));
                if (DomainWriter.weakened(entry.getValue())) {
                    dropped.add(name + ": more ranges than are sent, their span instead");
                }
            }
            catch (NotWritable e) {
                dropped.add(name + ": " + e.getMessage());
            }
        });
        json.name("domains").open('[');
        written.forEach(json::raw);
        json.close(']');
        if (!dropped.isEmpty()) {
            json.name("dropped").open('[');
            dropped.forEach(json::string);
            json.close(']');
        }
        if (conjuncts.size() == 1) {
            json.name("expression").raw(conjuncts.getFirst());
        }
        else if (!conjuncts.isEmpty()) {
            json.name("expression").open('{').field("call", "$and").field("type", "boolean").name("args").open('[');
            conjuncts.forEach(json::raw);
            json.close(']').close('}');
        }
        return json.close('}').toString();
    }
}
