package io.skipbridge.trino.metadata;

import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.ColumnPosition;
import io.trino.spi.connector.ConnectorMetadata;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.RetryMode;
import io.trino.spi.connector.SchemaTableName;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Consumer;

import static io.trino.spi.type.BigintType.BIGINT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestSegmentRefusals
{
    private static final BridgeColumnHandle COLUMN = new BridgeColumnHandle("a", BIGINT, ColumnKind.DATA, 0);
    private static final Map<String, Consumer<ConnectorMetadata>> STATEMENTS = Map.ofEntries(
            Map.entry("skipbridge segment add s.t PATH)", metadata -> metadata.beginInsert(null, null, List.of(), RetryMode.NO_RETRIES)),
            Map.entry("skipbridge segment add s.t PATH, and take the old ones out: skipbridge segment delete s.t ID)", metadata -> metadata.getMergeRowIdColumnHandle(null, null)),
            Map.entry("skipbridge segment delete s.t ID...)", metadata -> metadata.truncateTable(null, null)),
            Map.entry("and add the same files to it)", metadata -> metadata.addColumn(null, null, new ColumnMetadata("b", BIGINT), new ColumnPosition.Last())),
            Map.entry("\"ALTER TABLE s.t DROP COLUMNS (a)\")", metadata -> metadata.dropColumn(null, null, COLUMN)),
            Map.entry("make a view in another catalog)", metadata -> metadata.renameColumn(null, null, COLUMN, "b")),
            Map.entry("\"ALTER TABLE s.t CHANGE a a TYPE\", with Hive's name of the type)", metadata -> metadata.setColumnType(null, null, COLUMN, BIGINT)),
            Map.entry("\"ALTER TABLE s.t RENAME TO s.u\")", metadata -> metadata.renameTable(null, null, new SchemaTableName("s", "u"))),
            Map.entry("\"DROP TABLE s.t\"; the files that were added stay)", metadata -> metadata.dropTable(null, null)),
            Map.entry("COMMENT '...'\")", metadata -> metadata.setTableComment(null, null, Optional.empty())));

    @Test
    void aTableOfSegmentsTellsTheWayRound()
    {
        STATEMENTS.forEach((remedy, statement) -> {
            TrinoException refused = assertThrows(TrinoException.class, () -> statement.accept(metadata("segments")));
            assertEquals("SKIPBRIDGE_OPERATION_BLOCKED", refused.getErrorCode().getName());
            assertTrue(refused.getMessage().contains(" not possible on s.t, a table of segments ("), refused::getMessage);
            assertTrue(refused.getMessage().endsWith(remedy), refused::getMessage);
        });
    }

    @Test
    void otherTablesHaveTrinosSentences()
    {
        for (String format : List.of("directory", "hudi", "")) {
            STATEMENTS.values().forEach(statement -> {
                TrinoException refused = assertThrows(TrinoException.class, () -> statement.accept(metadata(format)));
                assertTrue(refused.getMessage().startsWith("This connector does not support "), refused::getMessage);
            });
        }
    }

    private static ConnectorMetadata metadata(String tableFormat)
    {
        TableDescription table = new TableDescription("s", "t", List.of(), OptionalDouble.empty(), "", "", Optional.empty(), Optional.empty(), Optional.empty(), "", "", tableFormat);
        return new SegmentRefusals()
        {
            @Override
            TableDescription description(ConnectorSession session, ConnectorTableHandle handle)
            {
                return table;
            }
        };
    }
}
