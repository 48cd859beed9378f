"""Sends system tables to an engine in pages that can be requested again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

from bridge.kernel.errors import InvalidRequest
from bridge.planner.answers.system_tables import COLUMNS, TableRows, system_table_rows
from bridge.planner.scan_plan import ScanPlan
from bridge.service._gen import ttypes

_MAX_ROWS = 10_000


class SystemRows:
    """Rows of one system table; one reader at a time.

    The law is that of `SplitSource`: a page is repeatable until the next token is requested, and
    "finished" is set with the last page, never while an error is pending.
    """

    def __init__(self, plan: ScanPlan, kind: str, wanted: list[str]) -> None:
        self.plan = plan
        self._width = len(COLUMNS.get(kind, ()))
        self._rows: Iterator[TableRows] = system_table_rows(plan, kind, wanted)
        self._lock = threading.Lock()
        self._token = 0
        self._last: ttypes.SystemPage | None = None
        self._held: TableRows | None = None

    def next(self, token: int, max_rows: int) -> ttypes.SystemPage:
        """The page for a token: 0 first, then the `next_token` of the last page.

        Errors:
            InvalidRequest: the token is neither the next nor the last.
            whatever makes listing fail.
        """
        if max_rows < 1:
            raise InvalidRequest(f"max_rows is {max_rows}", "ask for at least one row")
        with self._lock:
            if self._last is not None and token == self._token - 1:
                return self._last
            if token != self._token:
                raise InvalidRequest(
                    f"token {token} is not the next one, {self._token}", "ask in order"
                )
            columns = self._draw(min(max_rows, _MAX_ROWS))
            self._token += 1
            self._last = ttypes.SystemPage(
                next_token=self._token,
                finished=columns is None,
                row_count=len(columns[0]) if columns else 0,
                columns=[json.dumps(column) for column in columns or []],
            )
            return self._last

    def close(self) -> None:
        self.plan.close()

    def _draw(self, most: int) -> TableRows | None:
        held, self._held = self._held, None
        if held is None:
            held = next(self._rows, None)
        if held is None:
            return None
        if len(held[0]) > most:
            self._held = [column[most:] for column in held]
            held = [column[:most] for column in held]
        return held
