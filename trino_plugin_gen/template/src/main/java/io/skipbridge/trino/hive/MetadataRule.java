package io.skipbridge.trino.hive;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** How a call of the engine's metadata interface is answered. Each method of the interface has one rule, by its name. */
enum MetadataRule
{
    /** {@link BothMetadata} has a method of the same name. */
    OWN,
    /** The side of the table's handle answers. */
    READ,
    /** Hive answers; a native handle is converted to Hive's, with all its conditions. */
    CONVERT,
    /** As CONVERT, and the tables that are named have changed. */
    CHANGE,
    /** Hive answers for its own handles; for a native handle it is refused by name. */
    REFUSE,
    /** Hive answers; no handle of a table to read is among the arguments. */
    HIVE,
    /** As HIVE, and the tables that are named have changed. */
    CHANGE_BY_NAME;

    private static final Map<String, MetadataRule> RULES = new HashMap<>();

    static {
        put(OWN, "getTableHandle", "getSystemTable", "getTableMetadata", "getColumnMetadata", "getTableStatistics", "applyTableFunction", "applyFilter", "applyProjection",
                "applyJoin", "dropSchema");
        put(READ, "applyAggregation", "applyLimit", "applyPartitioning", "applySample", "applyTableScanRedirect", "applyTopN",
                "allowSplittingReadIntoMultipleSubQueries", "getColumnHandles", "getInfo", "getTableName", "getTableProperties", "getTableSchema",
                "resolveIndex", "validateScan",
                // of later releases
                "getColumnHandlesForTableExecute", "getTableCredentials");
        put(CONVERT, "getInsertLayout", "getInsertWriterScalingOptions", "getStatisticsCollectionMetadata", "beginStatisticsCollection", "finishStatisticsCollection",
                "applyDelete", "applyUpdate", "getMergeRowIdColumnHandle", "getRowChangeParadigm", "getTableHandleForExecute", "getUpdateLayout");
        put(CHANGE, "addColumn", "addField", "beginInsert", "beginMerge", "beginTableExecute", "executeDelete", "executeUpdate", "dropColumn", "dropField",
                "dropNotNullConstraint", "dropTable", "renameColumn", "renameField", "renameTable", "setColumnComment", "setColumnType", "setFieldType", "setTableComment", "setTableProperties", "truncateTable",
                "setDefaultValue", "dropDefaultValue", "createBranch", "dropBranch", "fastForwardBranch");
        put(REFUSE, "beginRefreshMaterializedView", "finishRefreshMaterializedView");
        put(CHANGE_BY_NAME, "beginCreateTable", "createTable");
        put(HIVE, "schemaExists", "listSchemaNames", "getSchemaProperties", "getSchemaOwner", "createSchema", "renameSchema", "setSchemaAuthorization",
                "listTables", "getRelationTypes", "listTableColumns", "streamTableColumns", "streamRelationColumns", "streamRelationComments", "redirectTable",
                "setTableAuthorization", "getNewTableLayout", "getNewTableWriterScalingOptions", "getSupportedType", "getMaxWriterTasks",
                "getStatisticsCollectionMetadataForWrite", "beginQuery", "cleanupQuery",
                // the handles of writes are Hive's own; of the tables that were read it takes no notice
                "finishCreateTable", "finishInsert", "supportsMissingColumnsOnInsert", "finishMerge", "getLayoutForTableExecute", "finishTableExecute", "executeTableExecute",
                "getCommonPartitioningHandle",
                "createView", "renameView", "setViewAuthorization", "dropView", "listViews", "getViews", "getView", "isView", "getViewProperties", "setViewComment", "setViewColumnComment",
                "createMaterializedView", "dropMaterializedView", "listMaterializedViews", "getMaterializedViews", "getMaterializedView", "getMaterializedViewProperties",
                "getMaterializedViewFreshness", "renameMaterializedView", "setMaterializedViewProperties", "setMaterializedViewColumnComment",
                "delegateMaterializedViewRefreshToConnector", "refreshMaterializedView",
                "listFunctions", "getFunctions", "getFunctionMetadata", "getAggregationFunctionMetadata", "getFunctionDependencies",
                "listLanguageFunctions", "getLanguageFunctions", "languageFunctionExists", "createLanguageFunction", "dropLanguageFunction",
                "roleExists", "createRole", "dropRole", "listRoles", "listRoleGrants", "grantRoles", "revokeRoles", "listApplicableRoles", "listEnabledRoles",
                "grantSchemaPrivileges", "denySchemaPrivileges", "revokeSchemaPrivileges", "grantTablePrivileges", "denyTablePrivileges", "revokeTablePrivileges", "listTablePrivileges",
                "getMetrics", "refreshView", "setMaterializedViewAuthorization", "listBranches", "branchExists",
                "grantTableBranchPrivileges", "denyTableBranchPrivileges", "revokeTableBranchPrivileges");
    }

    private static void put(MetadataRule rule, String... methods)
    {
        List.of(methods).forEach(method -> {
            if (RULES.put(method, rule) != null) {
                throw new IllegalStateException("two rules for " + method);
            }
        });
    }

    /** Empty for a method that this release of Trino added: Hive answers, and a native handle is refused. */
    static Optional<MetadataRule> of(String method)
    {
        return Optional.ofNullable(RULES.get(method));
    }
}
