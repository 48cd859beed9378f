"""What writers ask before they replace files of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Literal, Protocol

from bridge.kernel.errors import InvalidRequest

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


class WriteCheck(Protocol):
    """The clustering of a table."""

    def check_write(
        self, files: Iterable[str | PathLike[str]], strategy: WriteStrategy = "reject"
    ) -> list[CancelledGroup]: ...


class ClusteredTable(Protocol):
    """A table of a session."""

    @property
    def clustering(self) -> WriteCheck: ...


def check_write(
    table: ClusteredTable, files: Iterable[str | PathLike[str]], strategy: WriteStrategy = "reject"
) -> list[CancelledGroup]:
    """Asks whether a writer may replace or delete files of a table now.

    A writer that does not ask loses no row, and makes readers lose none: groups whose files change
    are not committed, or are read from their listed files. New files need no question.

    Args:
        files: paths or URIs of what the writer is about to replace or delete.
        strategy: ``reject`` raises if a waiting clustering plan rewrites one of the files;
            ``allow`` cancels those groups of the plan, the others go on.

    Returns:
        The groups that were cancelled.

    Errors:
        ClusteringPending: the strategy is ``reject``, and a plan rewrites one of the files.
        InvalidRequest: no such strategy, or ``table`` is the name of a table.
        TableNotFound, FileCorrupt (a plan is damaged), IndexCorrupt, StorageFailure and others.
    """
    if isinstance(table, str | PathLike):
        raise InvalidRequest(
            f"table is no table of a session: {table!r}",
            "give session.table(NAME), of `with bridge.connect() as session`",
        )
    return table.clustering.check_write(files, strategy)
