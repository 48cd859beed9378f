package io.skipbridge.trino.metadata;

import io.skipbridge.client.BridgeFailure;
import io.skipbridge.trino.Planners;
import io.skipbridge.trino.wire.PlannerAddress;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.SchemaTableName;
import org.junit.jupiter.api.Test;

import java.net.ConnectException;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;

import static java.util.stream.Collectors.toSet;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

/** What is told of many relations: refusals leave one out, and a failure is never a shorter list. */
class TestRelations
{
    private static final List<SchemaTableName> NAMES = IntStream.range(0, 100).mapToObj(i -> new SchemaTableName("s", "t" + i)).toList();

    @Test
    void refusedRelationsAloneAreLeftOut()
    {
        Set<String> refused = Set.of("UNSUPPORTED_TABLE", "UNSUPPORTED_TYPE", "TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "INVALID_CONFIGURATION");
        for (String code : refused) {
            assertEquals(without("s.t7"), describedWith("s.t7", failure(code, "USER_ERROR", false)), code);
        }
        for (String code : Set.of("FILE_CORRUPT", "SEGMENT_LOG_CORRUPT", "PARTITION_ABSENT")) {
            assertEquals(without("s.t7"), describedWith("s.t7", failure(code, "EXTERNAL", false)), code);
        }
    }

    @Test
    void aFailureOfPlannerMetastoreOrStoreIsNoShorterList()
    {
        List<TrinoException> failures = List.of(
                failure("METASTORE_UNAVAILABLE", "EXTERNAL", true),
                failure("METASTORE_ERROR", "EXTERNAL", false),
                failure("STORAGE_ERROR", "EXTERNAL", true),
                failure("FILE_UNREADABLE", "EXTERNAL", false),
                failure("LIMIT_EXCEEDED", "INSUFFICIENT_RESOURCES", false),
                failure("INTERNAL", "INTERNAL_ERROR", false),
                failure("PROTOCOL_MISMATCH", "USER_ERROR", false),
                Planners.unreachable(List.of(new PlannerAddress("127.0.0.1", 1)), new ConnectException("refused")));
        for (TrinoException failure : failures) {
            assertEquals(failure, assertThrows(TrinoException.class, () -> describedWith("s.t99", failure)));
        }
    }

    private static Set<String> without(String name)
    {
        return NAMES.stream().map(SchemaTableName::toString).filter(other -> !other.equals(name)).collect(toSet());
    }

    private static Set<String> describedWith(String name, TrinoException failure)
    {
        return Set.copyOf(Relations.describe(NAMES, relation -> {
            if (relation.toString().equals(name)) {
                throw failure;
            }
            return Optional.of(relation.toString());
        }));
    }

    private static TrinoException failure(String code, String category, boolean retryable)
    {
        return Planners.failure(new BridgeFailure(code, category, "it failed", "", retryable));
    }
}
