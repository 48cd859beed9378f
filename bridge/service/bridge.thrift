/* The planner's service. Framed transport, binary protocol, one method call a frame.
 * Compiled once with the Thrift compiler into _gen/ (see CONTRIBUTING.md); the Java sides carry codecs of their own. */
namespace py _gen

/* One row of bridge/errors.py. category is one of Trino's: USER_ERROR, INTERNAL_ERROR, INSUFFICIENT_RESOURCES, EXTERNAL. */
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
  5: i32 open_plans
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
  10: optional double data_bytes
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
  9: optional string owner
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
  7: list<string> projected_columns,
  8: optional i64 limit,      // the engine wants so many rows that satisfy the predicate, any if order is empty
  9: map<string, string> options,  // pruning_enabled, workers, concurrency, target_split_bytes ...
  10: list<SortKey> order,    // with limit: the first rows in this order; the engine still sorts
  11: bool enforced           // the engine dropped its filter, as an Answer allowed: TABLE_CHANGED if that no longer holds
}

struct Plan {
  1: string handle,           // names process and plan
  2: string endpoint,         // where next_splits, narrow and close of this plan go
  3: i64 generation,          // -1: no index
  4: string freshness,        // "live" | "cached(60s)" | "snapshot"
  5: list<string> dropped     // what the translation could not express
}

struct Aggregate {
  1: string function,         // "count", "min", "max"
  2: string column            // "" with count: rows
}

/* What statistics alone may answer; without aggregates and group_by only whether the predicate is enforced. */
struct Question {
  1: list<Aggregate> aggregates,
  2: list<string> group_by,   // partition keys and hidden columns
  3: i32 max_wait_ms          // nothing is answered later than this; what was listed by then serves the scan
}

struct Answer {
  1: string endpoint,         // holds the file set that the answer is true of: plan this query there
  2: bool enforced,           // every row of every file left satisfies the whole predicate
  3: bool answered,
  4: string reason,           // a code where not answered: NOT_ENFORCED, UNKNOWN_FILES, NOT_EXACT, TOO_LATE ...
  5: string rows,             // JSON [[...], ...]: group_by, then aggregates; values as in docs/reference/predicates.md
  6: i64 files                // that the answer speaks of
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

/* payload, little-endian, S = split_count, F = file_count:
 *   i32[S+1] first file of each split     i32[S] weight in thousandths (50..1000)   i32[S] reserved, -1
 *   i64[F] start   i64[F] length   i64[F] file size   i64[F] modified, ms since the epoch (-1 unknown)
 *   i32[F] index into partitions
 *   i32[F+1] path offsets, then the UTF-8 bytes of the paths (canonical URIs)
 */
struct SplitBatch {
  1: i64 next_token,
  2: bool finished,           // true: nothing follows, never while an error is pending
  3: i32 split_count,
  4: i32 file_count,
  5: list<PartitionEntry> partitions,
  6: binary payload,
  7: optional string report   // JSON of the PruneReport, with the last batch
}

/* Files that hold no row of interest, by the index alone: storage was not listed.
 * A reader drops a file only if its path, size and time are those told here; whatever is not named is read.
 * files, little-endian, F = skipped: i64[F] size   i64[F] modified, ms since the epoch
 *   i32[F+1] path offsets, then the UTF-8 bytes of the paths below root (canonical URIs) */
struct FileSelection {
  1: i32 protocol,            // a client refuses another
  2: i64 generation,          // -1: no index
  3: bool none,               // no row at all can match, whatever the files hold: all may be dropped
  4: i64 known,               // files that the index knows in the partitions in question
  5: i64 skipped,
  6: string root,
  7: binary files,
  8: list<string> dropped,    // what the translation could not express
  9: list<string> notes       // why an index was not used, with the mend
}

service Planner {
  Health health(),
  list<string> list_schemas() throws (1: BridgeFailure failure),
  list<string> list_tables(1: string schema_name) throws (1: BridgeFailure failure),
  /* those among the tables that are views, whoever's */
  list<string> list_views(1: string schema_name) throws (1: BridgeFailure failure),
  /* with a query_id the table's listing begins: its scans come soon */
  Table get_table(1: string schema_name, 2: string table_name, 3: string engine, 4: string query_id) throws (1: BridgeFailure failure),
  Plan plan(1: PlanRequest request) throws (1: BridgeFailure failure),
  void narrow(1: string handle, 2: string predicate) throws (1: BridgeFailure failure),
  SplitBatch next_splits(1: string handle, 2: i64 token, 3: i32 max_splits, 4: i32 max_wait_ms) throws (1: BridgeFailure failure),
  string explain(1: PlanRequest request) throws (1: BridgeFailure failure),
  void close_plan(1: string handle) throws (1: BridgeFailure failure),
  Answer answer(1: PlanRequest request, 2: Question question) throws (1: BridgeFailure failure),
  Table get_statistics(1: PlanRequest request) throws (1: BridgeFailure failure),
  Plan open_system_table(1: PlanRequest request, 2: string kind) throws (1: BridgeFailure failure),
  SystemPage next_rows(1: string handle, 2: i64 token, 3: i32 max_rows) throws (1: BridgeFailure failure),
  FileSelection select_files(1: PlanRequest request) throws (1: BridgeFailure failure)
}
