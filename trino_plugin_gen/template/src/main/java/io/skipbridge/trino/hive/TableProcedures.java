package io.skipbridge.trino.hive;

import io.trino.spi.connector.ConnectorAccessControl;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.procedure.Procedure;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/** Follows procedures, which change tables outside of the query's transaction. */
final class TableProcedures
{
    private static final MethodHandle TELL;

    static {
        try {
            TELL = MethodHandles.lookup().findStatic(
                    TableProcedures.class, "tell", MethodType.methodType(void.class, Consumer.class, Throwable.class, String.class, String.class));
        }
        catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private TableProcedures() {}

    /** The procedure, which tells afterwards of the table that it may have changed. One that takes no table is as it was. */
    static Procedure follow(Procedure procedure, Consumer<SchemaTableName> changed)
    {
        List<String> names = procedure.getArguments().stream().map(Procedure.Argument::getName).toList();
        MethodHandle method = procedure.getMethodHandle();
        int schema = names.indexOf("SCHEMA_NAME");
        int table = names.indexOf("TABLE_NAME");
        if (schema < 0 || table < 0) {
            return procedure;
        }
        // the engine gives its session and access control beside the arguments
        int[] places = IntStream.range(0, method.type().parameterCount())
                .filter(place -> method.type().parameterType(place) != ConnectorSession.class && method.type().parameterType(place) != ConnectorAccessControl.class)
                .toArray();
        MethodHandle tell = MethodHandles.permuteArguments(
                TELL.bindTo(changed),
                method.type().insertParameterTypes(0, Throwable.class).changeReturnType(void.class),
                0,
                1 + places[schema],
                1 + places[table]);
        return new Procedure(procedure.getSchema(), procedure.getName(), procedure.getArguments(), MethodHandles.tryFinally(method, tell), procedure.requiresNamedArguments());
    }

    private static void tell(Consumer<SchemaTableName> changed, Throwable failure, String schema, String table)
    {
        if (schema != null && table != null) {
            changed.accept(new SchemaTableName(schema, table));
        }
    }
}
