"""Every error a user can meet: one tree, one table of codes.

An error has a code, one sentence with the value found, and a hint that says how to remedy it. The
service sends the same four fields, and the Java sides map `category` to the engine's own error
type.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar


class Category(Enum):
    """Who can remedy it; the names are Trino's error types."""

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

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text}\n  -> {self.hint}" if self.hint else text


class UserError(BridgeError):
    """The request cannot be carried out as it stands."""

    category = Category.USER_ERROR


class ExternalError(BridgeError):
    """Something outside skipbridge failed."""

    category = Category.EXTERNAL


class InvalidPredicate(UserError):
    code = "INVALID_PREDICATE"


class UnsupportedType(UserError):
    code = "UNSUPPORTED_TYPE"


class TypeMismatch(UserError):
    code = "TYPE_MISMATCH"


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
    """The table has no such version, or it was cleaned."""

    code = "READ_VERSION_NOT_FOUND"


class SnapshotExpired(ExternalError):
    """The query outlived the file set that its earlier scans saw; it never mixes two."""

    code = "SNAPSHOT_EXPIRED"
    retryable = True


class UnsupportedTable(UserError):
    """The table is of a kind whose raw files would give wrong rows (ACID, Iceberg, Delta, Hudi,
    views).
    """

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
    """Client and planner speak different versions of the protocol between them."""

    code = "PROTOCOL_MISMATCH"


class ReadVersionUnsupported(UserError):
    """An older version of a table was asked for whose table format keeps none."""

    code = "READ_VERSION_UNSUPPORTED"


class NotReadOnly(UserError):
    code = "READ_ONLY"


class EnvironmentMissing(UserError):
    """A program or library of this machine is missing or too old."""

    code = "ENVIRONMENT"


class PortInUse(UserError):
    code = "PORT_IN_USE"


class PartitionAbsent(ExternalError):
    """The directory of a registered partition, or of a table, is not there."""

    code = "PARTITION_ABSENT"


class FileUnreadable(ExternalError):
    code = "FILE_UNREADABLE"


class FileCorrupt(ExternalError):
    code = "FILE_CORRUPT"


class FileChanged(ExternalError):
    code = "FILE_CHANGED"
    retryable = True


class TableChanged(ExternalError):
    """What was found while the query was planned does not hold any more."""

    code = "TABLE_CHANGED"
    retryable = True


class StorageFailure(ExternalError):
    code = "STORAGE_ERROR"
    retryable = True


class IndexCorrupt(ExternalError):
    code = "INDEX_CORRUPT"


class IndexNewer(IndexCorrupt):
    """A later version of this program wrote it; what it holds is not known here."""

    code = "INDEX_NEWER"


class IndexKindFailed(ExternalError):
    """An index kind, perhaps another distribution's, raised what it should not have."""

    code = "INDEX_KIND_FAILED"


class IndexConflict(ExternalError):
    code = "INDEX_CONFLICT"
    retryable = True


class MetastoreUnavailable(ExternalError):
    code = "METASTORE_UNAVAILABLE"
    retryable = True


class MetastoreFailure(ExternalError):
    code = "METASTORE_ERROR"


class PlannerUnavailable(ExternalError):
    code = "PLANNER_UNAVAILABLE"
    retryable = True


class PlanLost(ExternalError):
    """The planner does not know this handle: it was restarted, or the plan expired."""

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
        if cls not in (UserError, ExternalError):
            found[cls.code] = cls
    return found
