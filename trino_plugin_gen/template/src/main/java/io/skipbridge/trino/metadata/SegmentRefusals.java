package io.skipbridge.trino.metadata;

import io.skipbridge.trino.wire.TableDescription;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.ColumnPosition;
import io.trino.spi.connector.ConnectorInsertTableHandle;
import io.trino.spi.connector.ConnectorMetadata;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.RetryMode;
import io.trino.spi.connector.RowChangeParadigm;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.type.Type;

import java.util.List;
import java.util.Optional;

import static io.skipbridge.trino.BridgeErrorCode.OPERATION_BLOCKED;

/**
 * Refuses the statements that tables of segments do not have, with the way round each. Of other tables, and where a statement names no table that
 * exists, Trino's own sentences stand.
 */
abstract class SegmentRefusals
        implements ConnectorMetadata
{
    private static final String SEGMENTS = "segments";
    private static final String NO_COMMENTS = "comments are given when the table is made: skipbridge sql \"CREATE TABLE ... (COLUMN TYPE COMMENT '...') COMMENT '...'\"";

    abstract TableDescription description(ConnectorSession session, ConnectorTableHandle table);

    @Override
    public ConnectorInsertTableHandle beginInsert(ConnectorSession session, ConnectorTableHandle table, List<ColumnHandle> columns, RetryMode retryMode)
    {
        refuse(session, table, "INSERT", "write files with another program, then: skipbridge segment add %s PATH");
        return ConnectorMetadata.super.beginInsert(session, table, columns, retryMode);
    }

    @Override
    public RowChangeParadigm getRowChangeParadigm(ConnectorSession session, ConnectorTableHandle table)
    {
        refuseRowChanges(session, table);
        return ConnectorMetadata.super.getRowChangeParadigm(session, table);
    }

    @Override
    public ColumnHandle getMergeRowIdColumnHandle(ConnectorSession session, ConnectorTableHandle table)
    {
        refuseRowChanges(session, table);
        return ConnectorMetadata.super.getMergeRowIdColumnHandle(session, table);
    }

    private void refuseRowChanges(ConnectorSession session, ConnectorTableHandle table)
    {
        refuse(session, table, "UPDATE, DELETE or MERGE of rows", "write new files, add them: skipbridge segment add %s PATH, and take the old ones out: skipbridge segment delete %s ID");
    }

    @Override
    public void truncateTable(ConnectorSession session, ConnectorTableHandle table)
    {
        refuse(session, table, "TRUNCATE", "take all segments out: skipbridge segment delete %s ID...");
        ConnectorMetadata.super.truncateTable(session, table);
    }

    @Override
    public void addColumn(ConnectorSession session, ConnectorTableHandle table, ColumnMetadata column, ColumnPosition position)
    {
        refuse(session, table, "ADD COLUMN " + column.getName(), "create another table with the column, and add the same files to it");
        ConnectorMetadata.super.addColumn(session, table, column, position);
    }

    @Override
    public void dropColumn(ConnectorSession session, ConnectorTableHandle table, ColumnHandle column)
    {
        refuse(session, table, "DROP COLUMN", "skipbridge sql \"ALTER TABLE %s DROP COLUMNS (" + name(column) + ")\"");
        ConnectorMetadata.super.dropColumn(session, table, column);
    }

    @Override
    public void renameColumn(ConnectorSession session, ConnectorTableHandle table, ColumnHandle column, String name)
    {
        refuse(session, table, "RENAME COLUMN " + name(column), "columns are found in the files by name; make a view in another catalog");
        ConnectorMetadata.super.renameColumn(session, table, column, name);
    }

    @Override
    public void setColumnType(ConnectorSession session, ConnectorTableHandle table, ColumnHandle column, Type type)
    {
        refuse(session, table, "SET DATA TYPE", "skipbridge sql \"ALTER TABLE %s CHANGE " + name(column) + " " + name(column) + " TYPE\", with Hive's name of the type");
        ConnectorMetadata.super.setColumnType(session, table, column, type);
    }

    @Override
    public void renameTable(ConnectorSession session, ConnectorTableHandle table, SchemaTableName name)
    {
        refuse(session, table, "RENAME", "skipbridge sql \"ALTER TABLE %s RENAME TO " + name + "\"");
        ConnectorMetadata.super.renameTable(session, table, name);
    }

    @Override
    public void dropTable(ConnectorSession session, ConnectorTableHandle table)
    {
        refuse(session, table, "DROP TABLE", "skipbridge sql \"DROP TABLE %s\"; the files that were added stay");
        ConnectorMetadata.super.dropTable(session, table);
    }

    @Override
    public void setTableComment(ConnectorSession session, ConnectorTableHandle table, Optional<String> comment)
    {
        refuse(session, table, "COMMENT ON TABLE", NO_COMMENTS);
        ConnectorMetadata.super.setTableComment(session, table, comment);
    }

    @Override
    public void setColumnComment(ConnectorSession session, ConnectorTableHandle table, ColumnHandle column, Optional<String> comment)
    {
        refuse(session, table, "COMMENT ON COLUMN " + name(column), NO_COMMENTS);
        ConnectorMetadata.super.setColumnComment(session, table, column, comment);
    }

    private static String name(ColumnHandle column)
    {
        return ((BridgeColumnHandle) column).name();
    }

    /** @param remedy with {@code %s} for the table's name */
    private void refuse(ConnectorSession session, ConnectorTableHandle table, String operation, String remedy)
    {
        TableDescription described = description(session, table);
        if (described.tableFormat().equals(SEGMENTS)) {
            String name = described.schemaName() + "." + described.tableName();
            throw new TrinoException(OPERATION_BLOCKED, "%s is not possible on %s, a table of segments (%s)".formatted(operation, name, remedy.replace("%s", name)));
        }
    }
}
