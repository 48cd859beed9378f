package io.skipbridge.hive;

import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.hive.predicate.ScanFilter;
import io.skipbridge.hive.wire.FileRequest;
import io.skipbridge.hive.wire.PlannerClient;
import io.skipbridge.hive.wire.SkippableFiles;
import org.apache.hadoop.hive.serde2.ColumnProjectionUtils;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hive.common.util.HiveVersionInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * Caches the files that each scan may skip. The planner is called once per query, table and predicate in this JVM.
 *
 * <p>No failure here fails a query. The scan then reads all its files, and one warning has the cause and the remedy.
 */
final class SkippableFilesCache
{
    static final SkippableFilesCache SHARED = new SkippableFilesCache(new CircuitBreaker(TimeUnit.SECONDS.toNanos(30), System::nanoTime));

    private static final Logger log = LoggerFactory.getLogger(SkippableFilesCache.class);
    private static final int MOST_NOTES = 20;
    private static final int LONGEST_NOTE = 1000;
    private static final int MAX_ANSWERS = 256;
    private static final long MAX_BYTES = 64L << 20;
    private static final long IDLE_NANOS = TimeUnit.MINUTES.toNanos(10);

    private final CircuitBreaker breaker;
    private final ScheduledExecutorService sweeping = KnownTables.inBackground();
    // By a digest of the question, the least recently used first. Answers stay true, because they identify files by size and time.
    private final Map<String, Answer> answers = new LinkedHashMap<>(16, 0.75f, true);

    private static final class Answer
    {
        private final FutureTask<SkippableFiles> task;
        private long used;

        Answer(FutureTask<SkippableFiles> task)
        {
            this.task = task;
        }

        long bytes()
        {
            try {
                return task.isDone() ? task.get().bytes() : 0;
            }
            catch (InterruptedException | ExecutionException e) {
                return 0;
            }
        }
    }

    SkippableFilesCache(CircuitBreaker breaker)
    {
        this.breaker = breaker;
    }

    /**
     * Never throws. A scan without a predicate makes no call.
     *
     * @param byPosition the setting that makes Hive find columns by position, so that index entries by name do not apply; null if there is no
     * such setting: Hive then reads files as the table describes them, whatever their partition says
     */
    SkippableFiles of(JobConf job, String byPosition)
    {
        return of(job, byPosition, Declaration.NONE);
    }

    /** The same of files that mean what their table says: nothing is skipped unless the index read them as the query does. */
    SkippableFiles ofDeclared(JobConf job)
    {
        return of(job, null, Declaration::of);
    }

    private SkippableFiles of(JobConf job, String byPosition, Function<JobConf, String> declared)
    {
        String table = job.get("name", "");
        try {
            if (!Settings.pruning(job)) {
                return SkippableFiles.nothing();
            }
            if (byPosition != null && job.getBoolean(byPosition, false)) {
                log.info("skipbridge: {} is read without skipping files: {} is true", table, byPosition);
                return SkippableFiles.nothing();
            }
            if (byPosition != null && DescribedColumns.concern(job)) {
                log.info("skipbridge: {} is read without skipping files: a partition describes a column of the filter otherwise than the table", table);
                return SkippableFiles.nothing();
            }
            String queryId = job.get("hive.query.id", "");
            String filter = ScanFilter.serialized(job);
            String document = filter.isEmpty() ? ScanFilter.document(job) : "";
            if (filter.isEmpty() && document.isEmpty()) {
                return SkippableFiles.nothing();
            }
            int dot = table.indexOf('.');
            if (dot < 1) {
                log.debug("a scan without a table's name reads all files: '{}'", table);
                return SkippableFiles.nothing();
            }
            String declaration = declared.apply(job);
            String compiled = CompiledColumns.of(job);
            if (compiled.isEmpty()) {
                log.info("skipbridge: {} is read without skipping files: its columns are not known", table);
                return SkippableFiles.nothing();
            }
            InetSocketAddress address = Settings.planner(job);
            List<String> key = Arrays.asList(queryId, table, filter, document, address.toString(), compiled, declaration);
            return answer(key, () -> ask(job, address, table, queryId, document.isEmpty() ? ScanFilter.document(job) : document, compiled, declaration));
        }
        catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        catch (Exception | LinkageError | StackOverflowError e) {
            failed(table, e.toString(), "build the jar for this version of Hive: skipbridge hive jar --hive-version " + version(), e);
        }
        return SkippableFiles.nothing();
    }

    /** @param question all that the answer depends on; it is not kept */
    SkippableFiles answer(List<String> question, Callable<SkippableFiles> ask)
            throws Exception
    {
        String key = digest(question);
        Answer mine = new Answer(new FutureTask<>(ask));
        Answer answer;
        synchronized (answers) {
            if (answers.isEmpty()) {
                // first, because it may fail: others would wait for ever for an answer that nobody asks for
                sweeping.schedule(this::sweep, 1, TimeUnit.MINUTES);
            }
            answer = answers.putIfAbsent(key, mine);
            (answer == null ? mine : answer).used = System.nanoTime();
        }
        if (answer == null) {
            answer = mine;
            mine.task.run();
            trim(System.nanoTime());
        }
        else {
            Hooks.COUNTERS.cachedAnswers.increment();
        }
        try {
            return answer.task.get();
        }
        catch (ExecutionException e) {
            if (e.getCause() instanceof Error) {
                throw (Error) e.getCause();
            }
            throw (Exception) e.getCause();
        }
    }

    private static String digest(List<String> question)
            throws NoSuchAlgorithmException
    {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (String text : question) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(0, bytes.length).array());
            digest.update(bytes);
        }
        return Base64.getEncoder().encodeToString(digest.digest());
    }

    private void sweep()
    {
        int left = 1;
        try {
            left = trim(System.nanoTime());
        }
        finally {
            if (left > 0) {
                sweeping.schedule(this::sweep, 1, TimeUnit.MINUTES);
            }
        }
    }

    /** Forgets what was not used for long, and what is too much, an answer that is too much by itself too. @return how many answers are left */
    int trim(long now)
    {
        synchronized (answers) {
            answers.values().removeIf(answer -> answer.task.isDone() && now - answer.used > IDLE_NANOS);
            long bytes = answers.values().stream().mapToLong(Answer::bytes).sum();
            Iterator<Answer> oldest = answers.values().iterator();
            while (oldest.hasNext() && (answers.size() > MAX_ANSWERS || bytes > MAX_BYTES)) {
                bytes -= oldest.next().bytes();
                oldest.remove();
            }
            return answers.size();
        }
    }

    private SkippableFiles ask(JobConf job, InetSocketAddress address, String table, String queryId, String document, String compiled, String declaration)
    {
        String planner = address.getHostString() + ":" + address.getPort();
        String ofTable = planner + "/" + table;
        if (document.isEmpty()) {
            return SkippableFiles.nothing();
        }
        int timeout = Settings.timeoutMillis(job);
        // A session that waits less than the server tells nothing of the planner to others.
        String ofPlanner = Settings.isWhole(timeout) ? planner : planner + "/" + timeout;
        if (breaker.open(planner) || breaker.open(ofPlanner) || breaker.open(ofTable)) {
            Hooks.COUNTERS.callsSpared.increment();
            return SkippableFiles.nothing();
        }
        int dot = table.indexOf('.');
        List<String> columns = Arrays.asList(ColumnProjectionUtils.getReadColumnNames(job));
        FileRequest request = new FileRequest(table.substring(0, dot), table.substring(dot + 1), queryId, version(), document, columns, compiled)
                .declaredAs(SkippedTimes.concern(document) ? "" : declaration);
        Hooks.COUNTERS.calls.increment();
        try {
            SkippableFiles found = new PlannerClient(address, timeout).listSkippableFiles(request);
            breaker.succeeded(planner);
            breaker.succeeded(ofPlanner);
            breaker.succeeded(ofTable);
            tell(table, found);
            found.notes().stream().limit(MOST_NOTES).forEach(note -> log.info("skipbridge: {}: {}", table, note.length() > LONGEST_NOTE ? note.substring(0, LONGEST_NOTE) : note));
            return found;
        }
        catch (PlannerClient.TooLong e) {
            broken(ofTable + "/TOO_LONG", table, "the query has " + e.getMessage(), "shorten its filter");
        }
        catch (IOException e) {
            broken(ofPlanner, table, "the planner at " + planner + " does not answer: " + e,
                    "start it (skipbridge serve), set " + Settings.PLANNER + " to its address, or raise " + Settings.TIMEOUT);
        }
        catch (ProtocolException e) {
            broken(planner, table, "what answers at " + planner + " is no planner of these hooks' version: " + e.getMessage(),
                    "take jar and planner from one release, and restart the planner: skipbridge hive jar, skipbridge serve");
        }
        catch (BridgeFailure e) {
            // An error of this query alone must not open the breaker for other queries.
            broken(e.ofThisQuery() ? ofTable + "/" + e.code() : ofTable, table, e.code() + ": " + e.getMessage(), e.remedy());
        }
        return SkippableFiles.nothing();
    }

    private static void tell(String table, SkippableFiles found)
    {
        found.byIndex().forEach(Hooks.COUNTERS::excluded);
        if (!found.byIndex().isEmpty()) {
            String counts = found.byIndex().toString();
            log.info("skipbridge: {}: files without a matching row by index: {}", table, counts.length() > LONGEST_NOTE ? counts.substring(0, LONGEST_NOTE) : counts);
        }
        if (found.unnamed() > 0) {
            Hooks.COUNTERS.filesUnnamed.add(found.unnamed());
            log.info("skipbridge: {}: {} of these files are read, because the planner's answer would be too long", table, found.unnamed());
        }
    }

    private void broken(String what, String table, String why, String remedy)
    {
        Hooks.COUNTERS.failures.increment();
        if (breaker.failed(what)) {
            log.warn("skipbridge: {} is read without skipping files: {} -> {} (told again after 30 s)", table, why, remedy);
        }
    }

    private void failed(String table, String why, String remedy, Throwable cause)
    {
        Hooks.COUNTERS.failures.increment();
        if (breaker.failed("hook/" + table)) {
            log.warn("skipbridge: {} is read without skipping files: {} -> {}", table, why, remedy, cause);
        }
    }

    static String version()
    {
        try {
            return HiveVersionInfo.getShortVersion();
        }
        catch (RuntimeException | LinkageError e) {
            return "unknown";
        }
    }
}
