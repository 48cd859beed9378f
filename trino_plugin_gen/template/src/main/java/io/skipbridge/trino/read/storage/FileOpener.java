package io.skipbridge.trino.read.storage;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.split.LogFile;
import io.skipbridge.trino.split.PlannedFile;
import io.skipbridge.trino.split.SplitPlacement;
import io.skipbridge.trino.wire.PartitionEntry;
import io.skipbridge.trino.wire.ReaderSpec;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorSession;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;

import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;

/**
 * Opens planned files, and refuses a file that changed since it was planned. Local files are read without Trino's file systems, which need another
 * look at each file for its time.
 */
public final class FileOpener
        implements Closeable
{
    private static final String LOCAL = "file://";
    private static final int MOST_BYTES = 16 << 20;

    private final Optional<TrinoFiles> stores;
    private final Optional<FileCache> cache;
    private final ReadBudget budget;
    private final Optional<Map<String, AtomicReference<String>>> etags;

    private FileOpener(Optional<TrinoFiles> stores, Optional<FileCache> cache, ReadBudget budget, Optional<Map<String, AtomicReference<String>>> etags)
    {
        this.stores = stores;
        this.cache = cache;
        this.budget = budget;
        this.etags = etags;
    }

    /** Without stores no class of Trino's file systems is loaded. */
    public static FileOpener create(
            Set<Store> stores,
            Map<String, String> properties,
            Optional<Map<String, String>> cache,
            String catalog,
            ConnectorContext context)
    {
        Optional<TrinoFiles> files = stores.isEmpty() ? Optional.empty() : Optional.of(TrinoFiles.of(stores, properties, catalog, context));
        return new FileOpener(files, cache.map(all -> FileCache.of(all, catalog, context)), new ReadBudget(stores.contains(Store.HDFS)), Optional.empty());
    }

    /** The same for one split: all that it reads of a file is of one version, however often it opens the file. */
    public FileOpener ofSplit()
    {
        return new FileOpener(stores, cache, budget, Optional.of(new ConcurrentHashMap<>()));
    }

    /** Whether a read of the file is a request to another machine. */
    public boolean remote(PlannedFile planned)
    {
        return remote(planned.path());
    }

    /** Whether a read of the file with this URI is a request to another machine. */
    public boolean remote(String uri)
    {
        return !uri.startsWith(LOCAL);
    }

    /** What scans may read ahead. */
    public ReadBudget budget()
    {
        return budget;
    }

    /** Where splits should run: on the workers whose caches keep their files. */
    public SplitPlacement placement()
    {
        return cache.map(FileCache::placement).orElse(SplitPlacement.ANYWHERE);
    }

    /** Opens the planned file. Another file under its name is FILE_CHANGED, at once or when it is read. */
    public ReadableFile open(ConnectorSession session, PlannedFile planned)
            throws IOException
    {
        String uri = planned.path();
        if (uri.startsWith(LOCAL)) {
            return openLocal(planned, false);
        }
        ReadableFile file = openRemote(session, planned, false);
        return cache.filter(_ -> FileCache.keeps(planned, System.currentTimeMillis()))
                .map(each -> each.over(file, planned, stores.orElseThrow().tellsUsersApart()))
                .orElse(file);
    }

    private ReadableFile openRemote(ConnectorSession session, PlannedFile planned, boolean mayGrow)
    {
        String uri = planned.path();
        Store store = supported(uri);
        TrinoFiles files = readers(store, uri);
        AtomicReference<String> etag = etags.map(all -> all.computeIfAbsent(uri, _ -> new AtomicReference<>())).orElseGet(AtomicReference::new);
        return new RemoteFile(planned, store, () -> files.file(session.getIdentity(), uri), mayGrow, etag);
    }

    private static Store supported(String uri)
    {
        return Store.of(uri).orElseThrow(() ->
                new TrinoException(NOT_SUPPORTED, "%s: the connector reads files of file://, s3://, gs://, abfs:// and hdfs:// only".formatted(uri)));
    }

    private TrinoFiles readers(Store store, String uri)
    {
        return stores.filter(each -> each.reads(store)).orElseThrow(() -> new TrinoException(
                BridgeErrorCode.INVALID_CONFIGURATION,
                "%s: this catalog does not read %s. Set %s=true in its file, and the store's properties as for Trino's hive connector".formatted(
                        uri, store.title(), StorageModules.enabled(store))));
    }

    /** Opens a planned log, which writers may have appended to since. A shorter one is FILE_CHANGED, at once or when it is read. */
    public ReadableFile openLog(ConnectorSession session, LogFile log)
            throws IOException
    {
        PlannedFile planned = new PlannedFile(log.path(), 0, log.size(), log.size(), log.modifiedMillis(), PartitionEntry.NONE, ReaderSpec.PARQUET, List.of());
        return log.path().startsWith(LOCAL) ? openLocal(planned, true) : openRemote(session, planned, true);
    }

    /** All bytes of a small file that no plan names, such as a schema. A path without a scheme is of Hadoop's default file system, else local. */
    public byte[] readAll(ConnectorSession session, String uri)
            throws IOException
    {
        boolean bare = uri.startsWith("/");
        if (uri.startsWith("file:/") || (bare && stores.filter(each -> each.reads(Store.HDFS)).isEmpty())) {
            Path path = Path.of(uri.replaceFirst("^(file:)?/+", "/"));
            if (Files.exists(path) && !Files.isRegularFile(path)) {
                throw new IOException("%s is no file".formatted(path));
            }
            try (InputStream stream = Files.newInputStream(path)) {
                return small(stream);
            }
        }
        TrinoFiles files = readers(bare ? Store.HDFS : supported(uri), uri);
        try (InputStream stream = files.file(session.getIdentity(), uri).newStream()) {
            return small(stream);
        }
    }

    private static byte[] small(InputStream stream)
            throws IOException
    {
        byte[] bytes = stream.readNBytes(MOST_BYTES + 1);
        if (bytes.length > MOST_BYTES) {
            throw new IOException("it has more than %d bytes".formatted(MOST_BYTES));
        }
        return bytes;
    }

    private static ReadableFile openLocal(PlannedFile planned, boolean mayGrow)
            throws IOException
    {
        String path = planned.path().substring(LOCAL.length());
        try {
            return new LocalFile(planned, path, mayGrow);
        }
        catch (FileNotFoundException e) {
            // Java says so too of a file that may not be opened
            if (Files.notExists(Path.of(path))) {
                throw FileVersions.gone(planned, e);
            }
            throw e;
        }
        catch (InvalidPathException e) {
            // in a locale such as C or POSIX, Java can open files with ASCII names only
            throw new TrinoException(
                    BridgeErrorCode.FILE_UNREADABLE,
                    "%s cannot be opened: Java cannot write this name in the locale of the process (%s). Start Trino with LC_ALL=C.UTF-8".formatted(
                            planned.path(), e.getReason()),
                    e);
        }
    }

    @Override
    public void close()
    {
        stores.ifPresent(TrinoFiles::close);
        cache.ifPresent(FileCache::close);
        budget.close();
    }
}
