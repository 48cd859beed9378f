"""The clustering of one table, for writers that cooperate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

from bridge.errors import InvalidRequest

if TYPE_CHECKING:
    from bridge.api.context import SessionContext

WriteStrategy = Literal["reject", "allow"]


@dataclass(frozen=True, slots=True)
class CancelledGroup:
    """A group of a clustering plan that a writer has cancelled.

    Attributes:
        instant: of the plan.
        group: its number in the plan.
        file: the writer's file because of which it is cancelled.
    """

    instant: str
    group: int
    file: str


class TableClustering:
    """The clustering of a table; made by `Table.clustering`."""

    def __init__(self, session: SessionContext, table: str) -> None:
        self._session = session
        self._table = table

    def check_write(
        self, files: Iterable[str | PathLike[str]], strategy: WriteStrategy = "reject"
    ) -> list[CancelledGroup]:
        """Asks whether files may be replaced or deleted now; see `bridge.api.writers`."""
        from bridge.jobs.cluster_writers import check_table_write

        if isinstance(files, str | PathLike):
            raise InvalidRequest(f"files is one path: {files}", "give a list of paths")
        found = check_table_write(
            self._session._config, self._table, [str(file) for file in files], strategy
        )
        return [CancelledGroup(each.instant, each.group, each.file) for each in found]
