import io.trino.server.Server;

/** Starts a Trino whose jars are on the class path, like its distribution does. Run from source: {@code java -cp ... TrinoMain.java VERSION}. */
public final class TrinoMain
{
    private TrinoMain() {}

    public static void main(String[] arguments)
    {
        new Server().start(arguments[0]);
    }
}
