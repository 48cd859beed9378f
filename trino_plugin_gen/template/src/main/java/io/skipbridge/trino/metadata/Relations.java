package io.skipbridge.trino.metadata;

import io.trino.spi.TrinoException;
import io.trino.spi.connector.SchemaTableName;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import java.util.function.Supplier;

import static io.trino.spi.StandardErrorCode.GENERIC_INTERNAL_ERROR;

/** Describes many relations, several at once. A refusal of one leaves that one out; any other failure is the result's, which is never incomplete in silence. */
final class Relations
{
    private static final int AT_ONCE = 8;

    private Relations() {}

    /** @param described of one relation; empty: it is left out */
    static <T> List<T> describe(Collection<SchemaTableName> names, Function<SchemaTableName, Optional<T>> described)
    {
        ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE, Thread.ofVirtual().factory());
        try {
            List<Future<Optional<T>>> tasks = new ArrayList<>();
            for (SchemaTableName name : names) {
                tasks.add(threads.submit(() -> unlessRefused(() -> described.apply(name))));
            }
            List<T> found = new ArrayList<>();
            for (Future<Optional<T>> task : tasks) {
                task.get().ifPresent(found::add);
            }
            return found;
        }
        catch (ExecutionException e) {
            throw e.getCause() instanceof TrinoException failure ? failure : new TrinoException(GENERIC_INTERNAL_ERROR, e.getCause());
        }
        catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new TrinoException(GENERIC_INTERNAL_ERROR, "The listing was interrupted", e);
        }
        finally {
            threads.shutdownNow();
        }
    }

    /** Empty for a relation that is refused. */
    static <T> Optional<T> unlessRefused(Supplier<Optional<T>> described)
    {
        try {
            return described.get();
        }
        catch (TrinoException e) {
            if (MissingEntity.refused(e)) {
                return Optional.empty();
            }
            throw e;
        }
    }
}
