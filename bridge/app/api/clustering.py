"""The clustering of one table, for writers that cooperate."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING

from bridge.clustering.write_check import CancelledGroup, WriteStrategy
from bridge.kernel.errors import InvalidRequest

if TYPE_CHECKING:
    from bridge.app.api.context import SessionContext


class TableClustering:
    """The clustering of a table; made by `Table.clustering`."""

    def __init__(self, session: SessionContext, table: str) -> None:
        self._session = session
        self._table = table

    def check_write(
        self, files: Iterable[str | PathLike[str]], strategy: WriteStrategy = "reject"
    ) -> list[CancelledGroup]:
        """Asks whether files may be replaced or deleted now; see `clustering.write_check`."""
        from bridge.clustering.commands.writers import check_table_write

        if isinstance(files, str | PathLike):
            raise InvalidRequest(f"files is one path: {files}", "give a list of paths")
        found = check_table_write(
            self._session._config, self._table, [str(file) for file in files], strategy
        )
        return [CancelledGroup(each.instant, each.group, each.file) for each in found]
