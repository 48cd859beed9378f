package io.skipbridge.trino.hive;

import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.procedure.Procedure;
import org.junit.jupiter.api.Test;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import static io.trino.spi.type.VarcharType.VARCHAR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

class TestTableProcedures
{
    private final List<SchemaTableName> told = new ArrayList<>();

    private static void change(ConnectorSession session, String mode, String schema, String table)
    {
        if (mode.equals("fail")) {
            throw new IllegalStateException(mode);
        }
    }

    private static void nothing(String mode) {}

    private static Procedure procedure(String method, MethodType type, String... arguments)
            throws ReflectiveOperationException
    {
        MethodHandle handle = MethodHandles.lookup().findStatic(TestTableProcedures.class, method, type);
        return new Procedure("system", method, Arrays.stream(arguments).map(name -> new Procedure.Argument(name, VARCHAR)).toList(), handle);
    }

    @Test
    void testTheTableIsToldAlsoWhenTheProcedureFails()
            throws Throwable
    {
        MethodType type = MethodType.methodType(void.class, ConnectorSession.class, String.class, String.class, String.class);
        MethodHandle handle = TableProcedures.follow(procedure("change", type, "MODE", "SCHEMA_NAME", "TABLE_NAME"), told::add).getMethodHandle();
        handle.invoke((ConnectorSession) null, "do", "s", "t");
        assertThrows(IllegalStateException.class, () -> handle.invoke((ConnectorSession) null, "fail", "s", "u"));
        handle.invoke((ConnectorSession) null, "do", (String) null, (String) null);
        assertEquals(List.of(new SchemaTableName("s", "t"), new SchemaTableName("s", "u")), told);
    }

    @Test
    void testAProcedureWithoutATableIsAsItWas()
            throws ReflectiveOperationException
    {
        Procedure procedure = procedure("nothing", MethodType.methodType(void.class, String.class), "MODE");
        assertSame(procedure, TableProcedures.follow(procedure, told::add));
    }
}
