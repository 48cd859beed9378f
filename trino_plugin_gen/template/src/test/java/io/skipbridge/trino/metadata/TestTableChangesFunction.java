package io.skipbridge.trino.metadata;

import io.airlift.slice.Slices;
import io.skipbridge.trino.BridgeTransaction;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ColumnSchema;
import io.trino.spi.connector.ConnectorAccessControl;
import io.trino.spi.connector.ConnectorSecurityContext;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.function.table.Argument;
import io.trino.spi.function.table.Descriptor;
import io.trino.spi.function.table.ScalarArgument;
import io.trino.spi.function.table.TableFunctionAnalysis;
import io.trino.spi.security.AccessDeniedException;
import io.trino.spi.security.ViewExpression;
import org.junit.jupiter.api.Test;

import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.UUID;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestTableChangesFunction
{
    private static final ViewExpression RULE = ViewExpression.builder().expression("x > 1").build();

    @Test
    void describesTheColumnsOfTheTable()
    {
        Rights rights = new Rights(List.of(), Map.of());
        TableFunctionAnalysis analysis = analyze(arguments("db", "t", "1", "3"), rights);
        assertEquals(List.of("x", "p"), analysis.getReturnedType().orElseThrow().getFields().stream().map(field -> field.getName().orElseThrow()).toList());
        assertTrue(analysis.getReturnedType().map(Descriptor::isTyped).orElseThrow());
        assertEquals("changes:1..3", ((TableChanges) analysis.getHandle()).table().readVersion());
        assertEquals(Set.of("x", "p"), rights.asked);
        assertEquals("changes:1..", ((TableChanges) analyze(arguments("db", "t", "1", null), rights).getHandle()).table().readVersion());
    }

    @Test
    void refusesWhatItCannotRead()
    {
        Rights rights = new Rights(List.of(), Map.of());
        for (int i = 0; i < 4; i++) {
            String[] texts = {"db", "t", "1", "3"};
            texts[i] = "";
            assertThrows(TrinoException.class, () -> analyze(arguments(texts), rights));
            texts[i] = null;
            if (i < 3) {
                assertThrows(TrinoException.class, () -> analyze(arguments(texts), rights));
            }
        }
    }

    @Test
    void asksForTheRightToReadBeforeItAsksForTheTable()
    {
        TableChangesFunction function = new TableChangesFunction(_ -> {
            throw new AssertionError("the table was asked for");
        });
        assertThrows(
                AccessDeniedException.class,
                () -> function.analyze(session(), new BridgeTransaction(UUID.randomUUID()), arguments("db", "t", "1", null), new ConnectorAccessControl() {}));
    }

    @Test
    void refusesRowFiltersAndMasks()
    {
        Rights filtered = new Rights(List.of(RULE), Map.of());
        Rights masked = new Rights(List.of(), Map.of(ColumnSchema.builder().setName("x").setType(BIGINT).build(), RULE));
        for (Rights rights : List.of(filtered, masked)) {
            assertTrue(assertThrows(TrinoException.class, () -> analyze(arguments("db", "t", "1", null), rights)).getMessage().contains("row filters or column masks"));
        }
    }

    private static TableFunctionAnalysis analyze(Map<String, Argument> arguments, ConnectorAccessControl rights)
    {
        BridgeMetadata metadata = new BridgeMetadata(null, null, "UTC", _ -> OptionalLong.empty())
        {
            @Override
            TableChanges changes(ConnectorSession session, TableVersion version)
            {
                BridgeColumnHandle key = new BridgeColumnHandle("p", VARCHAR, ColumnKind.PARTITION_KEY, 0);
                BridgeColumnHandle data = new BridgeColumnHandle("x", BIGINT, ColumnKind.DATA, 0);
                BridgeTableHandle table = new BridgeTableHandle(
                        version.name().getSchemaName(), version.name().getTableName(), version.readVersion(), "", "UTC", "", List.of(key), ScanFilter.ALL, false, ScanFilter.ALL,
                        OptionalLong.empty(), List.of(), Optional.empty(), Optional.empty(), Optional.empty());
                return new TableChanges(table, List.of(data, key));
            }
        };
        return new TableChangesFunction(_ -> metadata).analyze(session(), new BridgeTransaction(UUID.randomUUID()), arguments, rights);
    }

    private static Map<String, Argument> arguments(String... texts)
    {
        List<String> names = List.of("SCHEMA_NAME", "TABLE_NAME", "START_VERSION", "END_VERSION");
        Map<String, Argument> arguments = new HashMap<>();
        for (int i = 0; i < texts.length; i++) {
            arguments.put(names.get(i), new ScalarArgument(VARCHAR, texts[i] == null ? null : Slices.utf8Slice(texts[i])));
        }
        return arguments;
    }

    private static ConnectorSession session()
    {
        return (ConnectorSession) Proxy.newProxyInstance(TestTableChangesFunction.class.getClassLoader(), new Class<?>[] {ConnectorSession.class}, (_, method, values) -> switch (method.getName()) {
            case "getProperty" -> values[1] == String.class ? "" : (Object) false;
            default -> throw new UnsupportedOperationException(method.getName());
        });
    }

    /** Allows every read, and has these rules for it. */
    private static final class Rights
            implements ConnectorAccessControl
    {
        private final List<ViewExpression> filters;
        private final Map<ColumnSchema, ViewExpression> masks;
        private final Set<String> asked = new HashSet<>();

        private Rights(List<ViewExpression> filters, Map<ColumnSchema, ViewExpression> masks)
        {
            this.filters = filters;
            this.masks = masks;
        }

        @Override
        public void checkCanSelectFromColumns(ConnectorSecurityContext context, SchemaTableName table, Set<String> columns)
        {
            asked.addAll(columns);
        }

        @Override
        public List<ViewExpression> getRowFilters(ConnectorSecurityContext context, SchemaTableName table)
        {
            return filters;
        }

        @Override
        public Map<ColumnSchema, ViewExpression> getColumnMasks(ConnectorSecurityContext context, SchemaTableName table, List<ColumnSchema> columns)
        {
            return masks;
        }
    }
}
