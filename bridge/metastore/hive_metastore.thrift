/* The part of Hive's metastore protocol that skipbridge speaks: unframed binary protocol, Hive 2.3 to 4.0.
 *
 * Field numbers and names are Hive's; readers skip the fields left out here. What a table or partition carries is kept
 * whole enough to be sent back by alter_table, so an alteration loses nothing (privileges live in tables of their own).
 * Compiled once into _gen/, see _gen/__init__.py.
 */
namespace py _gen

enum PrincipalType { USER = 1, ROLE = 2, GROUP = 3 }

/* A server refuses to show an insert-only ACID table to a client that does not say it knows them; we ask, to refuse by code. */
enum ClientCapability { TEST_CAPABILITY = 1, INSERT_ONLY_TABLES = 2 }

struct FieldSchema { 1: string name, 2: string type, 3: string comment }

struct Order { 1: string col, 2: i32 order }

enum SerdeType { HIVE = 1, SCHEMA_REGISTRY = 2 }

/* From the fourth on 4.0 alone knows them. */
struct SerDeInfo {
  1: string name,
  2: string serializationLib,
  3: map<string, string> parameters,
  4: optional string description,
  5: optional string serializerClass,
  6: optional string deserializerClass,
  7: optional SerdeType serdeType
}

/* Its third field, a map with lists as keys, cannot be read by Python: skewed tables are read, and never altered. */
struct SkewedInfo { 1: list<string> skewedColNames, 2: list<list<string>> skewedColValues }

struct StorageDescriptor {
  1: list<FieldSchema> cols,
  2: string location,
  3: string inputFormat,
  4: string outputFormat,
  5: bool compressed,
  6: i32 numBuckets,
  7: SerDeInfo serdeInfo,
  8: list<string> bucketCols,
  9: list<Order> sortCols,
  10: map<string, string> parameters,
  11: optional SkewedInfo skewedInfo,
  12: optional bool storedAsSubDirectories
}

struct Database {
  1: string name,
  2: string description,
  3: string locationUri,
  4: map<string, string> parameters,
  6: optional string ownerName,
  7: optional PrincipalType ownerType
}

struct Table {
  1: string tableName,
  2: string dbName,
  3: string owner,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: i32 retention,
  7: StorageDescriptor sd,
  8: list<FieldSchema> partitionKeys,
  9: map<string, string> parameters,
  10: string viewOriginalText,
  11: string viewExpandedText,
  12: string tableType,
  14: optional bool temporary = false,
  15: optional bool rewriteEnabled,
  18: optional PrincipalType ownerType // 4.0; left out, it becomes a user again
}

struct Partition {
  1: list<string> values,
  2: string dbName,
  3: string tableName,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: StorageDescriptor sd,
  7: map<string, string> parameters
}

struct ClientCapabilities { 1: required list<ClientCapability> values }

struct GetTableRequest { 1: required string dbName, 2: required string tblName, 3: optional ClientCapabilities capabilities }

struct GetTableResult { 1: required Table table }

struct GetTablesRequest {
  1: required string dbName,
  2: optional list<string> tblNames,
  3: optional ClientCapabilities capabilities
}

struct GetTablesResult { 1: required list<Table> tables }

struct AddPartitionsRequest {
  1: required string dbName,
  2: required string tblName,
  3: required list<Partition> parts,
  4: required bool ifNotExists,
  5: optional bool needResult = true
}

struct AddPartitionsResult { 1: optional list<Partition> partitions }

/* Partitions with only the fields that are asked for; since 4.0. */
struct PartitionWithoutSD { 1: list<string> values, 4: string relativePath, 5: map<string, string> parameters }

struct PartitionSpecWithSharedSD { 1: list<PartitionWithoutSD> partitions, 2: StorageDescriptor sd }

struct PartitionListComposingSpec { 1: list<Partition> partitions }

struct PartitionSpec {
  3: string rootPath,
  4: optional PartitionSpecWithSharedSD sharedSDPartitionSpec,
  5: optional PartitionListComposingSpec partitionList
}

enum PartitionFilterMode { BY_NAMES, BY_VALUES, BY_EXPR }

struct GetPartitionsFilterSpec { 7: optional PartitionFilterMode filterMode, 8: optional list<string> filters }

struct GetProjectionsSpec { 1: list<string> fieldList }

struct GetPartitionsRequest {
  2: string dbName,
  3: string tblName,
  7: GetProjectionsSpec projectionSpec,
  8: GetPartitionsFilterSpec filterSpec
}

struct GetPartitionsResponse { 1: list<PartitionSpec> partitionSpec }

struct EnvironmentContext { 1: map<string, string> properties }

/* A union in Hive, whose other half are serialised expressions; a union with one field set is written like a struct. */
struct RequestPartsSpec { 1: optional list<string> names }

struct DropPartitionsRequest {
  1: required string dbName,
  2: required string tblName,
  3: required RequestPartsSpec parts,
  4: optional bool deleteData,
  5: optional bool ifExists = true,
  7: optional EnvironmentContext environmentContext,
  8: optional bool needResult = true
}

struct DropPartitionsResult { 1: optional list<Partition> partitions }

/* Column statistics, as ANALYZE leaves them. Bit vectors are left out. */
struct BooleanColumnStatsData { 1: required i64 numTrues, 2: required i64 numFalses, 3: required i64 numNulls }
struct LongColumnStatsData { 1: optional i64 lowValue, 2: optional i64 highValue, 3: required i64 numNulls, 4: required i64 numDVs }
struct DoubleColumnStatsData { 1: optional double lowValue, 2: optional double highValue, 3: required i64 numNulls, 4: required i64 numDVs }
struct StringColumnStatsData { 1: required i64 maxColLen, 2: required double avgColLen, 3: required i64 numNulls, 4: required i64 numDVs }
struct BinaryColumnStatsData { 1: required i64 maxColLen, 2: required double avgColLen, 3: required i64 numNulls }
struct Decimal { 1: required binary unscaled, 3: required i16 scale }
struct DecimalColumnStatsData {
  1: optional Decimal lowValue,
  2: optional Decimal highValue,
  3: required i64 numNulls,
  4: required i64 numDVs
}
struct Date { 1: required i64 daysSinceEpoch }
struct DateColumnStatsData { 1: optional Date lowValue, 2: optional Date highValue, 3: required i64 numNulls, 4: required i64 numDVs }
struct Timestamp { 1: required i64 secondsSinceEpoch }
/* Since 4.0. */
struct TimestampColumnStatsData {
  1: optional Timestamp lowValue,
  2: optional Timestamp highValue,
  3: required i64 numNulls,
  4: required i64 numDVs
}

/* A union in Hive. */
struct ColumnStatisticsData {
  1: optional BooleanColumnStatsData booleanStats,
  2: optional LongColumnStatsData longStats,
  3: optional DoubleColumnStatsData doubleStats,
  4: optional StringColumnStatsData stringStats,
  5: optional BinaryColumnStatsData binaryStats,
  6: optional DecimalColumnStatsData decimalStats,
  7: optional DateColumnStatsData dateStats,
  8: optional TimestampColumnStatsData timestampStats
}

struct ColumnStatisticsObj { 1: required string colName, 2: required string colType, 3: required ColumnStatisticsData statsData }

struct TableStatsRequest { 1: required string dbName, 2: required string tblName, 3: required list<string> colNames }

struct TableStatsResult { 1: required list<ColumnStatisticsObj> tableStats }

struct PartitionsStatsRequest {
  1: required string dbName,
  2: required string tblName,
  3: required list<string> colNames,
  4: required list<string> partNames
}

struct AggrStats { 1: required list<ColumnStatisticsObj> colStats, 2: required i64 partsFound }

struct NotificationEventRequest { 1: required i64 lastEvent, 2: optional i32 maxEvents }

struct NotificationEvent {
  1: required i64 eventId,
  2: required i32 eventTime,
  3: required string eventType,
  4: optional string dbName,
  5: optional string tableName,
  6: required string message,
  7: optional string messageFormat
}

struct NotificationEventResponse { 1: required list<NotificationEvent> events }

struct CurrentNotificationEventId { 1: required i64 eventId }

exception MetaException { 1: string message } (python.immutable = "false")
exception UnknownDBException { 1: string message } (python.immutable = "false")
exception NoSuchObjectException { 1: string message } (python.immutable = "false")
exception AlreadyExistsException { 1: string message } (python.immutable = "false")
exception InvalidObjectException { 1: string message } (python.immutable = "false")
exception InvalidOperationException { 1: string message } (python.immutable = "false")
exception ConfigValSecurityException { 1: string message } (python.immutable = "false")

service ThriftHiveMetastore {
  // fb303, which Hive's service extends
  string getName(),
  string getVersion(),

  string get_config_value(1: string name, 2: string defaultValue) throws (1: ConfigValSecurityException o1),

  list<string> get_all_databases() throws (1: MetaException o1),
  Database get_database(1: string name) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void create_database(1: Database database)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3),
  void drop_database(1: string name, 2: bool deleteData, 3: bool cascade)
    throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),

  void alter_database(1: string dbname, 2: Database db) throws (1: MetaException o1, 2: NoSuchObjectException o2),

  list<string> get_tables(1: string db_name, 2: string pattern) throws (1: MetaException o1),
  list<string> get_tables_by_type(1: string db_name, 2: string pattern, 3: string tableType) throws (1: MetaException o1),
  list<string> get_all_tables(1: string db_name) throws (1: MetaException o1),
  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  GetTablesResult get_table_objects_by_name_req(1: GetTablesRequest req)
    throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3),
  void create_table_with_environment_context(1: Table tbl, 2: EnvironmentContext environment_context)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4),
  void alter_table_with_environment_context(
    1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: EnvironmentContext environment_context)
    throws (1: InvalidOperationException o1, 2: MetaException o2),
  void drop_table_with_environment_context(
    1: string dbname, 2: string name, 3: bool deleteData, 4: EnvironmentContext environment_context)
    throws (1: NoSuchObjectException o1, 2: MetaException o3),

  // 2.3 declares only MetaException, as its first; both are one string, so the text arrives either way
  list<string> get_partition_names(1: string db_name, 2: string tbl_name, 3: i16 max_parts = -1)
    throws (1: NoSuchObjectException o1, 2: MetaException o2),
  list<Partition> get_partitions_by_names(1: string db_name, 2: string tbl_name, 3: list<string> names)
    throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3),
  GetPartitionsResponse get_partitions_with_specs(1: GetPartitionsRequest request) throws (1: MetaException o1),
  AddPartitionsResult add_partitions_req(1: AddPartitionsRequest request)
    throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  void alter_partitions_with_environment_context(
    1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts, 4: EnvironmentContext environment_context)
    throws (1: InvalidOperationException o1, 2: MetaException o2),
  DropPartitionsResult drop_partitions_req(1: DropPartitionsRequest req)
    throws (1: NoSuchObjectException o1, 2: MetaException o2),

  TableStatsResult get_table_statistics_req(1: TableStatsRequest request)
    throws (1: NoSuchObjectException o1, 2: MetaException o2),
  AggrStats get_aggr_stats_for(1: PartitionsStatsRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2),

  NotificationEventResponse get_next_notification(1: NotificationEventRequest rqst),
  CurrentNotificationEventId get_current_notificationEventId()
}
