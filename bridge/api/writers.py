"""What writers ask before they replace files of a table."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from bridge.api.clustering import CancelledGroup, WriteStrategy
from bridge.api.table import Table
from bridge.errors import InvalidRequest


def check_write(
    table: Table, files: Iterable[str | PathLike[str]], strategy: WriteStrategy = "reject"
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
    if not isinstance(table, Table):
        raise InvalidRequest(
            f"table is no table of a session: {table!r}",
            "give session.table(NAME), of `with bridge.connect() as session`",
        )
    return table.clustering.check_write(files, strategy)
