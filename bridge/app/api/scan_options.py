"""What a scan was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.expression.nodes import AlwaysTrue, Expression
from bridge.table.read_version import NEWEST, ReadVersion


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """One scan as its caller described it; see `bridge.app.api.table.Table.scan`.

    Attributes:
        dropped: parts of the condition that could not be expressed, as texts.
        strict: the condition was typed by a person: what does not parse there is an error.
        read: the version of the table.
    """

    expression: Expression = field(default_factory=AlwaysTrue)
    dropped: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    semantics: str = "trino"
    freshness: str | None = None
    pruning: bool = True
    generation: int | None = None
    strict: bool = True
    read: ReadVersion = NEWEST
