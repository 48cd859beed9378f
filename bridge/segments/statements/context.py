"""What running a statement needs, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bridge.indexing.table import Progress, Say
from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidStatement
from bridge.segments.sql.blocked import display_name
from bridge.segments.sql.statements import Name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SqlContext:
    """Settings of a run.

    Attributes:
        schema: of names without one.
        local: builds in this process instead of on Spark.
    """

    config: Config
    schema: str = "default"
    local: bool = False
    spark: SparkSession | None = None
    progress: Progress = lambda done, total: None
    say: Say = lambda text: None

    def table(self, name: Name) -> str:
        """``schema.table``; or a directory, if the name has a slash.

        Errors:
            InvalidStatement: the name cannot be that of a table.
        """
        if name.schema is None and "/" in name.name:
            return name.name
        schema = self.schema if name.schema is None else name.schema
        for part in (schema, name.name):
            if not part or "." in part or "/" in part:
                raise InvalidStatement(
                    f"{display_name(name)} cannot be the name of a table", "write schema.table"
                )
        return f"{schema}.{name.name}".lower()

    def building(self) -> dict[str, Any]:
        """The arguments of jobs that read files."""
        return {"local": self.local, "spark": self.spark, "progress": self.progress}


@dataclass(frozen=True, slots=True)
class SqlResult:
    """What one statement did.

    Attributes:
        statement: as it was understood.
        summary: one sentence; empty if rows tell it all.
        columns: of the rows; none for statements that have no rows.
        rows: as many values as columns, each fit for JSON.
        notices: what was asked for and is not needed here.
        report: details, fit for JSON.
    """

    statement: str
    summary: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    notices: tuple[str, ...] = ()
    report: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON; rows are dicts."""
        found: dict[str, Any] = {"statement": self.statement}
        if self.columns:
            found["rows"] = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        if self.report is not None:
            found["report"] = dict(self.report)
        return found | {"notices": list(self.notices)}


def listing(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`SqlResult.columns` and `SqlResult.rows` of dicts."""
    return {
        "columns": tuple(columns),
        "rows": tuple(tuple(row.get(column) for column in columns) for row in rows),
    }
