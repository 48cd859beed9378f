/* The planner's service, protocol 2. Framed transport, binary protocol, one method call per frame.
 * Compiled once with the Thrift compiler into _gen/ (see CONTRIBUTING.md); the Java sides carry codecs of their own.
 * A request tells the protocol of its sender; one without it is of protocol 1. PROTOCOL_MISMATCH refuses another than this.
 * Clients ask health first and refuse a planner of another protocol. */
namespace py _gen

/* One row of bridge/kernel/errors.py. category is one of Trino's: USER_ERROR, INTERNAL_ERROR, INSUFFICIENT_RESOURCES, EXTERNAL. */
exception BridgeFailure {
  1: string code,
  2: string category,
  3: string message,
  4: string hint,
  5: bool retryable
} (python.immutable = "false")

struct Health {
  1: string version,          // of skipbridge
  2: i32 protocol,            // of this file; a client refuses another
  3: string endpoint,         // host:port of the process that answered
  4: i64 uptime_seconds,
  5: i32 open_plans,
  6: list<string> processes   // host:port of each process behind the address; all calls of a query go to one of them
}

struct Column {
  1: string name,
  2: string hive_type,        // "decimal(10,2)", "struct<a:int>"
  3: string engine_type,      // the same in the asking engine's words: "decimal(10,2)", "row(\"a\" integer)"
  4: bool partition_key,
  5: optional string comment,
  // exact or estimated, absent when unknown
  6: optional double nulls_fraction,
  7: optional double distinct_count,
  8: optional double low,     // engine's stats-calculus number: numbers as they are, dates in days, timestamps in microseconds
  9: optional double high,
  10: optional double data_bytes,
  11: optional bool overlapping  // every file's values overlap another's: a condition on it holds for no whole file but those outside it
}

struct Table {
  1: string schema_name,
  2: string table_name,
  3: list<Column> columns,    // data columns, then partition keys
  4: optional double row_count,
  5: string location,
  6: string format,           // "parquet"; "view": view is told and nothing else is
  7: optional string comment,
  8: optional string view,    // the JSON with which Trino describes a view of its own
  9: optional string owner,
  10: string snapshot_id,     // of the snapshot whose schema this is
  11: string read_version,    // as in PlanRequest
  12: string table_format     // "directory", "hudi", "segments" ...; "" of an older planner and of a view
}

/* One key of an ORDER BY. */
struct SortKey {
  1: string column,
  2: bool descending,
  3: bool nulls_first
}

struct PlanRequest {
  1: string schema_name,
  2: string table_name,
  3: string query_id,
  4: string engine,           // "trino" | "hive"
  5: string engine_version,
  6: string predicate,        // JSON, see docs/reference/predicates.md; "" is no predicate
  7: list<string> projected_columns,  // hidden columns among them; empty: all; a single "": none, as count(*) does
  8: optional i64 limit,      // the engine wants so many rows that satisfy the predicate, any if order is empty
  9: map<string, string> options,  // pruning_enabled, workers, concurrency, target_split_bytes ...
  10: list<SortKey> order,    // with limit: the first rows in this order; the engine still sorts
  11: bool enforced,          // the engine dropped its filter, as an AggregateResult allowed: TABLE_CHANGED if that no longer holds
  12: string read_version,    // "" newest, "time:<ms>", "version:<id>"; see docs/reference/wire.md
  13: string snapshot_id,     // as an earlier answer about this table and version told it; "": the planner chooses
  14: i32 protocol = 1,       // of the client
  15: list<string> dynamic_filter_columns,  // columns for which apply_dynamic_filter may come
  16: i32 first_splits        // the plan's answer may bring a first batch of at most so many splits; 0: none
}

/* How the files of a slice are read. */
struct ReaderSpec {
  1: string format,           // name of a file format: "parquet"
  2: map<string, string> properties,  // of the SerDe
  3: optional list<Column> columns    // that the files were written with; absent: the table's
}

struct Aggregate {
  1: string function,         // "count", "min", "max"
  2: string column            // "" with count: rows
}

/* What statistics alone may answer; without aggregates and group_by only whether the predicate is enforced. */
struct AggregateRequest {
  1: list<Aggregate> aggregates,
  2: list<string> group_by,   // partition keys and hidden columns
  3: i32 max_wait_ms          // nothing is answered later than this; what was listed by then serves the scan
}

struct AggregateResult {
  1: string endpoint,         // holds the file set that the result is true of: plan this query there
  2: bool enforced,           // every row of every file left satisfies the whole predicate
  3: bool answered,
  4: string reason,           // a code where not answered: NOT_ENFORCED, UNKNOWN_FILES, NOT_EXACT, TOO_LATE ...
  5: string rows,             // JSON [[...], ...]: group_by, then aggregates; values as in docs/reference/predicates.md
  6: i64 files                // that the result speaks of
}

/* Rows of a system table, as JSON: one list a column. */
struct SystemPage {
  1: i64 next_token,
  2: bool finished,
  3: i32 row_count,
  4: list<string> columns
}

struct PartitionEntry {
  1: string name,             // "month=1", "" when not partitioned
  2: list<string> values,     // unescaped text by partition key, "" where null
  3: list<bool> nulls
}

/* payload, little-endian, S = split_count, F = file_count, L = log_count:
 *   i32[S+1] first file of each split     i32[S] weight in thousandths (50..1000)
 *   i64[F] start   i64[F] length   i64[F] file size   i64[F] modified, ms since the epoch (-1 unknown)
 *   i32[F] index into partitions   i32[F] index into readers
 *   i32[F+1] path offsets, then the UTF-8 bytes of the paths (canonical URIs)
 * and where L > 0, the logs that a reader merges into each file, in merge order:
 *   i32[F+1] first log of each file   i64[L] size   i64[L] modified
 *   i32[L+1] path offsets, then the UTF-8 bytes of the paths
 * A slice of logs alone is a file with an empty path and size -1.
 */
struct SplitBatch {
  1: i64 next_token,
  2: bool finished,           // true: nothing follows, never while an error is pending
  3: i32 split_count,
  4: i32 file_count,
  5: list<PartitionEntry> partitions,
  6: binary payload,
  7: optional string report,  // JSON of the PruneReport, with the last batch
  8: list<ReaderSpec> readers,  // each once
  9: i32 log_count,
  10: optional binary etag_hashes  // i32[F], little-endian: see docs/reference/wire.md; 0 where none is known
}

struct Plan {
  1: string handle,           // names process and plan
  2: string endpoint,         // where next_splits, apply_dynamic_filter and close_plan of this plan go
  3: i64 generation,          // -1: no index
  4: string freshness,        // "live" | "cached(60s)" | "snapshot"
  5: list<string> dropped,    // what the translation could not express
  6: string snapshot_id,
  7: string row_filter,       // rows outside it do not belong to the version: the reader removes them. JSON as predicate, "" is none
  8: i32 dynamic_filter_wait_ms,  // how long it pays to wait for dynamic filters before next_splits
  9: list<string> dynamic_filter_columns,  // those among the announced ones whose filters can skip files; empty with a wait: all, since they drop rows
  10: optional SplitBatch first  // what next_splits answers to token 0; with finished the plan is closed, and handle is empty
}

/* Files that hold no row of interest, by the index alone: storage was not listed.
 * A reader drops a file only if its path, size and time are those told here; whatever is not named is read.
 * Those that min/max excludes come first, and are named where not all fit.
 * files, little-endian, F = skipped: i64[F] size   i64[F] modified, ms since the epoch
 *   i32[F+1] path offsets, then the UTF-8 bytes of the paths below root (canonical URIs) */
struct SkippableFiles {
  1: i32 protocol,            // a client refuses another
  2: i64 generation,          // -1: no index
  // 3 was a bool by which older planners said that no row at all can match: it is not believed
  4: i64 known,               // files that the index knows in the partitions in question
  5: i64 skipped,
  6: string root,
  7: binary files,
  8: list<string> dropped,    // what the translation could not express
  9: list<string> notes,      // why an index was not used, with the remedy
  10: map<string, i64> by_index,  // how many files each index excludes, those that are not named too
  11: i64 unnamed             // files that hold no row either, and do not fit the answer: they are read
}

/* Tables whose files an index may leave out, for a hook that decides per query which scans to change. */
struct IndexedTables {
  1: i32 protocol,            // a client refuses another
  2: map<string, string> locations,      // canonical URI by "schema.table"; tables without a usable index are left out
  3: map<string, string> input_formats,  // by Hive's input format, the class of the hooks that extends it and leaves out files
  4: list<string> undecided   // tables about which the answer came too late: ask again
}

service Planner {
  Health health(),
  list<string> list_schemas(1: i32 protocol = 1) throws (1: BridgeFailure failure),
  list<string> list_tables(1: string schema_name, 2: i32 protocol = 1) throws (1: BridgeFailure failure),
  /* those among the tables that are views, whoever's */
  list<string> list_views(1: string schema_name, 2: i32 protocol = 1) throws (1: BridgeFailure failure),
  /* With a query_id the table's listing begins, and its index is opened: its scans come soon. Without one, or for a query
   * that asks for very many tables, the table is described alone: no index is opened, and row_count is absent. */
  Table get_table(1: string schema_name, 2: string table_name, 3: string engine, 4: string query_id, 5: string read_version = "", 6: i32 protocol = 1) throws (1: BridgeFailure failure),
  Plan plan(1: PlanRequest request) throws (1: BridgeFailure failure),
  void apply_dynamic_filter(1: string handle, 2: string predicate) throws (1: BridgeFailure failure),
  SplitBatch next_splits(1: string handle, 2: i64 token, 3: i32 max_splits, 4: i32 max_wait_ms) throws (1: BridgeFailure failure),
  void close_plan(1: string handle) throws (1: BridgeFailure failure),
  AggregateResult aggregate(1: PlanRequest request, 2: AggregateRequest aggregates) throws (1: BridgeFailure failure),
  Table get_statistics(1: PlanRequest request) throws (1: BridgeFailure failure),
  Plan open_system_table(1: PlanRequest request, 2: string kind) throws (1: BridgeFailure failure),
  SystemPage next_rows(1: string handle, 2: i64 token, 3: i32 max_rows) throws (1: BridgeFailure failure),
  SkippableFiles list_skippable_files(1: PlanRequest request) throws (1: BridgeFailure failure),
  /* "schema.table" each; a table that is not decided soon is named as undecided */
  IndexedTables list_indexed_tables(1: list<string> tables, 2: i32 protocol = 1) throws (1: BridgeFailure failure),
  /* Partitions were written: their entries are brought up to date in the background, if the table has an index. Names as the
   * metastore spells them, "" of a table without partitions; none at all: the whole table. */
  void refresh_index(1: string schema_name, 2: string table_name, 3: list<string> partitions, 4: i32 protocol = 1) throws (1: BridgeFailure failure)
}
