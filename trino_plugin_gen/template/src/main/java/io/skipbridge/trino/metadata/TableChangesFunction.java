package io.skipbridge.trino.metadata;

import io.airlift.slice.Slice;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.ConnectorAccessControl;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.function.table.AbstractConnectorTableFunction;
import io.trino.spi.function.table.Argument;
import io.trino.spi.function.table.Descriptor;
import io.trino.spi.function.table.ScalarArgument;
import io.trino.spi.function.table.ScalarArgumentSpecification;
import io.trino.spi.function.table.TableFunctionAnalysis;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;

import static io.trino.spi.StandardErrorCode.INVALID_FUNCTION_ARGUMENT;
import static io.trino.spi.function.table.ReturnTypeSpecification.GenericTable.GENERIC_TABLE;
import static io.trino.spi.type.VarcharType.VARCHAR;

/**
 * {@code TABLE(system.table_changes(...))}: the rows of a table that were written after one version, up to and including another. The engine
 * turns a call into an ordinary scan of these rows.
 */
public final class TableChangesFunction
        extends AbstractConnectorTableFunction
{
    private static final String SCHEMA_NAME = "SCHEMA_NAME";
    private static final String TABLE_NAME = "TABLE_NAME";
    private static final String START_VERSION = "START_VERSION";
    private static final String END_VERSION = "END_VERSION";

    private final Function<ConnectorTransactionHandle, BridgeMetadata> transactions;

    public TableChangesFunction(Function<ConnectorTransactionHandle, BridgeMetadata> transactions)
    {
        super(
                "system",
                "table_changes",
                List.of(
                        ScalarArgumentSpecification.builder().name(SCHEMA_NAME).type(VARCHAR).build(),
                        ScalarArgumentSpecification.builder().name(TABLE_NAME).type(VARCHAR).build(),
                        ScalarArgumentSpecification.builder().name(START_VERSION).type(VARCHAR).build(),
                        ScalarArgumentSpecification.builder().name(END_VERSION).type(VARCHAR).defaultValue(null).build()),
                GENERIC_TABLE);
        this.transactions = transactions;
    }

    @Override
    public TableFunctionAnalysis analyze(
            ConnectorSession session, ConnectorTransactionHandle transaction, Map<String, Argument> arguments, ConnectorAccessControl accessControl)
    {
        SchemaTableName name = new SchemaTableName(required(arguments, SCHEMA_NAME), required(arguments, TABLE_NAME));
        TableVersion version = TableVersions.changes(session, name, required(arguments, START_VERSION), optional(arguments, END_VERSION));
        accessControl.checkCanSelectFromColumns(null, name, Set.of());
        TableChanges changes = transactions.apply(transaction).changes(session, version);
        checkAccess(accessControl, name, changes.columns());
        return TableFunctionAnalysis.builder()
                .returnedType(new Descriptor(changes.columns().stream()
                        .map(column -> new Descriptor.Field(column.name(), Optional.of(column.type())))
                        .toList()))
                .handle(changes)
                .build();
    }

    /** The engine checks tables of a FROM clause itself. It refuses row filters and masks here, for it does not apply them to a function. */
    private static void checkAccess(ConnectorAccessControl accessControl, SchemaTableName name, List<BridgeColumnHandle> columns)
    {
        accessControl.checkCanSelectFromColumns(null, name, columns.stream().map(BridgeColumnHandle::name).collect(Collectors.toUnmodifiableSet()));
        boolean filtered = !accessControl.getRowFilters(null, name).isEmpty();
        boolean masked = !accessControl.getColumnMasks(null, name, columns.stream().map(column -> new ColumnMetadata(column.name(), column.type()).getColumnSchema()).toList()).isEmpty();
        if (filtered || masked) {
            throw new TrinoException(INVALID_FUNCTION_ARGUMENT, "Table %s has row filters or column masks: table_changes cannot apply them".formatted(name));
        }
    }

    private static String required(Map<String, Argument> arguments, String name)
    {
        return optional(arguments, name).orElseThrow(() -> invalid("%s is NULL".formatted(name.toLowerCase(Locale.ENGLISH))));
    }

    private static Optional<String> optional(Map<String, Argument> arguments, String name)
    {
        if (!(((ScalarArgument) arguments.get(name)).getValue() instanceof Slice text)) {
            return Optional.empty();
        }
        if (text.length() == 0) {
            throw invalid("%s is empty".formatted(name.toLowerCase(Locale.ENGLISH)));
        }
        return Optional.of(text.toStringUtf8());
    }

    private static TrinoException invalid(String problem)
    {
        return new TrinoException(INVALID_FUNCTION_ARGUMENT, "table_changes: " + problem);
    }
}
