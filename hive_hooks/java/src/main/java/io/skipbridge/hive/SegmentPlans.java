package io.skipbridge.hive;

import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ChosenSegments;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.hive.predicate.ScanFilter;
import io.skipbridge.hive.segments.Columns;
import io.skipbridge.hive.wire.FileBatch;
import io.skipbridge.hive.wire.FilePlan;
import io.skipbridge.hive.wire.FileRequest;
import io.skipbridge.hive.wire.PlannedFile;
import io.skipbridge.hive.wire.PlannerClient;
import io.skipbridge.hive.wire.TableVersion;
import org.apache.hadoop.hive.serde2.ColumnProjectionUtils;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.mapred.JobConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Collectors;

/** Asks the planner which files a scan of a table of segments reads. Every failure is the query's: nobody else knows the files. */
final class SegmentPlans
{
    private static final Logger log = LoggerFactory.getLogger(SegmentPlans.class);
    /** A query that can only fail without its answer waits longer for it. */
    private static final int LEAST_TIMEOUT = 30_000;
    /** Names the view in the properties of its files' reader. */
    private static final String VIEW = "skipbridge.view";
    private static final String BAD_PREDICATE = "INVALID_PREDICATE";

    private SegmentPlans() {}

    private static String chosenSegments(String setting, String table)
    {
        try {
            return ChosenSegments.parse(setting).getOrDefault(table.toLowerCase(Locale.ENGLISH), "");
        }
        catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(Settings.SEGMENTS + ": " + e.getMessage(), e);
        }
    }

    /**
     * The files of each split.
     *
     * @param hot the names of the columns that every reader of the splits asks for; null if others may be asked for
     */
    static List<List<PlannedFile>> files(JobConf job, String table, Columns columns, List<String> hot)
            throws IOException
    {
        Planned planned = planned(job, table, columns, hot);
        log.info("skipbridge: {} reads {} (generation {}, query {})", table, planned, planned.generation, job.get("hive.query.id", ""));
        return planned.splits;
    }

    /** What a scan would read now, or why that is unknown, for people. */
    static String explained(JobConf job, String table, Columns columns, List<String> hot)
    {
        try {
            return planned(job, table, columns, hot).toString();
        }
        catch (IOException e) {
            return "unknown: " + e.getMessage();
        }
    }

    private static Planned planned(JobConf job, String table, Columns columns, List<String> hot)
            throws IOException
    {
        int dot = table.indexOf('.');
        String chosen = chosenSegments(job.get(SegmentStorageHandler.CHOSEN, ""), table);
        String version = chosen.isEmpty() ? "" : ";segments=" + chosen;
        FileRequest request = new FileRequest(
                table.substring(0, dot),
                table.substring(dot + 1),
                job.get("hive.query.id", ""),
                SkippableFilesCache.version(),
                predicate(job, table),
                Arrays.asList(ColumnProjectionUtils.getReadColumnNames(job)),
                "").of(version, "");
        request = hot == null ? request : request.ofAllColumns(hot);
        InetSocketAddress address = Settings.planner(job);
        int timeout = Math.max(Settings.timeoutMillis(job), LEAST_TIMEOUT);
        String planner = address.getHostString() + ":" + address.getPort();
        Hooks.COUNTERS.calls.increment();
        try {
            return planned(new PlannerClient(address, timeout), timeout, request, table, columns);
        }
        catch (BridgeFailure e) {
            throw failed(e.code() + ": " + e.getMessage() + " -> " + e.remedy(), e);
        }
        catch (ProtocolException e) {
            throw failed("PROTOCOL_MISMATCH: what answers at " + planner + " is no planner of this version of the jar: " + e.getMessage()
                    + " -> take jar and planner from one release, and restart the planner: skipbridge hive jar, skipbridge serve", e);
        }
        catch (Refused e) {
            throw failed(e.getMessage(), e);
        }
        catch (IOException e) {
            throw failed("PLANNER_UNAVAILABLE: " + table + " is a table of segments, whose files only the planner knows, and the planner at " + planner
                    + " does not answer: " + e + " -> start it (skipbridge serve), or set " + Settings.PLANNER + " to its address", e);
        }
    }

    private static Planned planned(PlannerClient planner, int timeout, FileRequest request, String table, Columns columns)
            throws IOException, BridgeFailure
    {
        TableVersion version = planner.describe(request);
        requireColumns(table, columns, version);
        FileRequest ofVersion = request.of(request.readVersion(), version.snapshotId());
        FilePlan plan;
        try {
            plan = planner.plan(ofVersion);
        }
        catch (BridgeFailure e) {
            if (!e.code().equals(BAD_PREDICATE)) {
                throw e;
            }
            log.warn("skipbridge: {} is read without skipping files: {}: {}", table, e.code(), e.getMessage());
            plan = planner.plan(ofVersion.whole());
        }
        return new Planned(drawn(plan, timeout), plan.generation());
    }

    private static List<List<PlannedFile>> drawn(FilePlan plan, int timeout)
            throws IOException, BridgeFailure
    {
        List<List<PlannedFile>> found = new ArrayList<>();
        FileBatch batch = plan.first();
        if (batch != null) {
            found.addAll(batch.splits());
        }
        if (plan.handle().isEmpty()) {
            return found;
        }
        PlannerClient planner = new PlannerClient(Settings.address(plan.endpoint()), timeout);
        try {
            while (batch == null || !batch.finished()) {
                batch = planner.nextSplits(plan.handle(), batch == null ? 0 : batch.nextToken());
                found.addAll(batch.splits());
            }
        }
        finally {
            try {
                planner.close(plan.handle());
            }
            catch (IOException | BridgeFailure | ProtocolException e) {
                log.debug("skipbridge: a plan was not closed, and ends by itself", e);
            }
        }
        return found;
    }

    /** The log is the truth about columns; the query was compiled with the metastore's copy. */
    private static void requireColumns(String table, Columns columns, TableVersion version)
            throws Refused
    {
        for (int i = 0; i < columns.size(); i++) {
            String type = version.columns().get(columns.name(i));
            if (type == null || !TypeInfoUtils.getTypeInfoFromTypeString(type).equals(columns.type(i))) {
                throw new Refused(String.format("TABLE_CHANGED: the column %s of %s is %s, but the query was compiled with %s -> run the query again",
                        columns.name(i), table, type == null ? "dropped" : type, columns.type(i)));
            }
        }
    }

    /** Empty if nothing is known of the predicate: then all files are read. */
    private static String predicate(JobConf job, String table)
    {
        if (!Settings.pruning(job)) {
            return "";
        }
        try {
            String document = ScanFilter.document(job);
            return SkippedTimes.concern(document) ? "" : document;
        }
        catch (RuntimeException | LinkageError | StackOverflowError e) {
            Hooks.COUNTERS.failures.increment();
            log.warn("skipbridge: {} is read without skipping files: {}", table, e.toString(), e);
            return "";
        }
    }

    private static IOException failed(String message, Exception cause)
    {
        Hooks.COUNTERS.failures.increment();
        return new IOException(message, cause);
    }

    /** The files of a scan. */
    private static final class Planned
    {
        private final List<List<PlannedFile>> splits;
        private final long generation;

        Planned(List<List<PlannedFile>> splits, long generation)
        {
            this.splits = splits;
            this.generation = generation;
        }

        @Override
        public String toString()
        {
            long files = splits.stream().flatMap(List::stream).map(PlannedFile::path).distinct().count();
            String views = splits.stream()
                    .flatMap(List::stream)
                    .map(file -> file.reader().properties().get(VIEW))
                    .filter(Objects::nonNull)
                    .distinct()
                    .sorted()
                    .collect(Collectors.joining(", "));
            return files + " files of its segments" + (views.isEmpty() ? "" : ", of the views " + views);
        }
    }

    /** An error with its code and remedy. */
    private static final class Refused
            extends IOException
    {
        private static final long serialVersionUID = 1;

        Refused(String message)
        {
            super(message);
        }
    }
}
