"""All errors that users can see: one class hierarchy, one code per class.

An error has a code, a category, one sentence with the value found, and a hint with the remedy. The
service sends these four fields. The Java clients map `category` to the engine's error type.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar


class Category(Enum):
    """Who can fix the error. The names are Trino's error types."""

    USER_ERROR = "USER_ERROR"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    INSUFFICIENT_RESOURCES = "INSUFFICIENT_RESOURCES"
    EXTERNAL = "EXTERNAL"


class BridgeError(Exception):
    """Base of all errors of skipbridge.

    Args:
        message: one sentence, with the value found.
        hint: what to do about it; may be empty.
    """

    code: ClassVar[str] = "INTERNAL"
    category: ClassVar[Category] = Category.INTERNAL_ERROR
    retryable: ClassVar[bool] = False
    served_hint: ClassVar[str] = ""
    """The hint for users of an engine, who do not run the planner; empty: the same."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text}\n  -> {self.hint}" if self.hint else text


class UserError(BridgeError):
    """The request must be changed."""

    category = Category.USER_ERROR


class ExternalError(BridgeError):
    """Something outside skipbridge failed."""

    category = Category.EXTERNAL


class InvalidPredicate(UserError):
    code = "INVALID_PREDICATE"


class UnsupportedType(UserError):
    code = "UNSUPPORTED_TYPE"


class SchemaNotFound(UserError):
    code = "SCHEMA_NOT_FOUND"


class TableNotFound(UserError):
    code = "TABLE_NOT_FOUND"


class TableExists(UserError):
    code = "TABLE_ALREADY_EXISTS"


class ColumnNotFound(UserError):
    code = "COLUMN_NOT_FOUND"


class AmbiguousColumn(UserError):
    code = "AMBIGUOUS_COLUMN"


class GenerationNotFound(UserError):
    code = "GENERATION_NOT_FOUND"


class ReadVersionNotFound(UserError):
    """The table has no such version, or the version was cleaned up."""

    code = "READ_VERSION_NOT_FOUND"


class SnapshotExpired(ExternalError):
    """The query outlived the file set of its earlier scans. A query never mixes two file sets."""

    code = "SNAPSHOT_EXPIRED"
    retryable = True


class UnsupportedTable(UserError):
    """Reading the raw files would give wrong rows (ACID, Iceberg, Delta, Hudi, views)."""

    code = "UNSUPPORTED_TABLE"


class SchemaConflict(UserError):
    code = "SCHEMA_CONFLICT"


class InvalidUri(UserError):
    code = "INVALID_URI"


class InvalidConfiguration(UserError):
    code = "INVALID_CONFIGURATION"


class InvalidRequest(UserError):
    code = "INVALID_REQUEST"


class ProtocolMismatch(UserError):
    """Client and planner use different protocol versions."""

    code = "PROTOCOL_MISMATCH"


class InvalidStatement(UserError):
    """A statement of `skipbridge sql` cannot be parsed."""

    code = "INVALID_STATEMENT"


class ReadVersionUnsupported(UserError):
    """An older version was requested of a table format that keeps none."""

    code = "READ_VERSION_UNSUPPORTED"


class SegmentNotFound(UserError):
    code = "SEGMENT_NOT_FOUND"


class SegmentOverlap(UserError):
    """A fact file would belong to a table of segments twice."""

    code = "SEGMENT_OVERLAP"


class SegmentSchemaMismatch(UserError):
    """A fact file lacks a column of its table, or holds it with a type that cannot be read."""

    code = "SEGMENT_SCHEMA_MISMATCH"


class SegmentBadValue(UserError):
    """A CSV file holds a value that cannot be cast to its column's type; only with ``strict``."""

    code = "SEGMENT_BAD_VALUE"


class OperationBlocked(UserError):
    """Tables of segments do not have this operation."""

    code = "OPERATION_BLOCKED"


class ClusteringPending(ExternalError):
    """A clustering is in progress: a writer's file is in it, or another process is at it."""

    code = "CLUSTERING_PENDING"
    retryable = True


class SegmentConflict(ExternalError):
    """Other commands changed a table of segments each time before this one could commit."""

    code = "SEGMENT_CONFLICT"
    retryable = True


class SegmentLogCorrupt(ExternalError):
    """The newest version of a table of segments cannot be read. An older one is never used."""

    code = "SEGMENT_LOG_CORRUPT"


class EnvironmentMissing(UserError):
    """A program or library is missing on this machine or too old."""

    code = "ENVIRONMENT"


class PortInUse(UserError):
    code = "PORT_IN_USE"


class PartitionAbsent(ExternalError):
    """The directory of a registered partition or table does not exist."""

    code = "PARTITION_ABSENT"


class FileUnreadable(ExternalError):
    code = "FILE_UNREADABLE"


class FileShort(FileUnreadable):
    """The file has fewer bytes than its listing tells: it is being written, or was cut."""


class FileCorrupt(ExternalError):
    code = "FILE_CORRUPT"


class FileAmbiguous(ExternalError):
    """Engines may read different rows or values from a file; only its index is affected."""

    code = "FILE_AMBIGUOUS"


class FileChanged(ExternalError):
    code = "FILE_CHANGED"
    retryable = True


class TableChanged(ExternalError):
    """The table changed while the query was planned."""

    code = "TABLE_CHANGED"
    retryable = True


class StorageFailure(ExternalError):
    code = "STORAGE_ERROR"
    retryable = True


class IndexCorrupt(ExternalError):
    code = "INDEX_CORRUPT"


class IndexNewer(IndexCorrupt):
    """A later version of this program wrote the index."""

    code = "INDEX_NEWER"


class IndexKindFailed(ExternalError):
    """An index kind, perhaps from another distribution, raised an unexpected error."""

    code = "INDEX_KIND_FAILED"


class IndexConflict(ExternalError):
    code = "INDEX_CONFLICT"
    retryable = True


class MetastoreUnavailable(ExternalError):
    code = "METASTORE_UNAVAILABLE"
    retryable = True
    served_hint = "tell who runs the planner: the metastore is away, or metastore.uri is wrong"


class MetastoreFailure(ExternalError):
    code = "METASTORE_ERROR"


class PlannerUnavailable(ExternalError):
    code = "PLANNER_UNAVAILABLE"
    retryable = True


class PlanLost(ExternalError):
    """The planner does not know this handle: it restarted, or the plan expired."""

    code = "PLAN_LOST"
    retryable = True


class PlanClosed(BridgeError):
    code = "PLAN_CLOSED"


class LimitExceeded(BridgeError):
    code = "LIMIT_EXCEEDED"
    category = Category.INSUFFICIENT_RESOURCES


class StorageFull(BridgeError):
    code = "STORAGE_FULL"
    category = Category.INSUFFICIENT_RESOURCES


def all_errors() -> dict[str, type[BridgeError]]:
    """Code to class, for the codec and the documentation."""
    found: dict[str, type[BridgeError]] = {}
    pending: list[type[BridgeError]] = [BridgeError]
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        if "code" in vars(cls):  # others have their parent's
            found.setdefault(cls.code, cls)
    return found
