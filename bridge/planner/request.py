"""An engine's request to the planner: one scan of one table."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.expression.nodes import AlwaysTrue, Expression
from bridge.kernel.types import TRINO, Semantics
from bridge.table.model import TableName
from bridge.table.read_version import NEWEST, ReadVersion
from bridge.table.snapshot import ReadsAlike, always_alike


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an ORDER BY."""

    column: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """One scan.

    Attributes:
        table: the table to scan.
        predicate: the engine's predicate as translated; the engine keeps all of it as residual.
        dropped: parts of the engine's predicate that the translation could not express.
        semantics: how the engine compares values.
        engine: the engine's name, for reports and metrics.
        query_id: all scans of one (query, table) see one file set; empty: not shared.
        pruning: False keeps every file, for comparison.
        freshness: overrides that of the table and the planner; `bridge.table.directory.freshness`.
        strict: a person typed the predicate: a value that does not parse is an error, not unknown.
        read: the version of the table.
        snapshot_id: the snapshot that the query saw before; empty: none.
        columns: names of the columns that the engine reads, in lower case; None: all.
        reads_alike: whether the engine reads a type from views as from facts of a format.
        generation: the index generation; None: the newest.
        limit: the number of matching rows wanted, any of them if there is no order; the engine must
            apply no other filter before its own limit.
        order: with a limit, the first rows in this order are wanted.
        enforced: the engine dropped its own filter, since every row of every file matched.
        absent_is_empty: a partition whose directory is missing is empty, as in Hive; otherwise it
            is an error, as in Trino.
        dynamic_filter_columns: columns for which dynamic filters may arrive, in lower case.
    """

    table: TableName
    predicate: Expression = field(default_factory=AlwaysTrue)
    dropped: tuple[str, ...] = ()
    semantics: Semantics = TRINO
    engine: str = "skipbridge"
    query_id: str = ""
    pruning: bool = True
    freshness: str | None = None
    strict: bool = False
    generation: int | None = None
    read: ReadVersion = NEWEST
    snapshot_id: str = ""
    columns: frozenset[str] | None = None
    reads_alike: ReadsAlike = always_alike
    limit: int | None = None
    order: tuple[SortKey, ...] = ()
    enforced: bool = False
    absent_is_empty: bool = False
    dynamic_filter_columns: frozenset[str] = frozenset()
