"""The check of ``doctor`` for tables of segments: whether Hive can open them."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError
from bridge.runtime.diagnostic import Diagnostic
from bridge.segments.commands.opened import open_segments
from bridge.segments.commands.registration import is_recorded


def examine_record(config: Config, table: str) -> Iterator[Diagnostic]:
    """Compares the metastore's record of a table of segments with its log; says nothing of others.

    A table that cannot be opened is reported by other checks.
    """
    try:
        with open_segments(config, table) as opened:
            right = is_recorded(config, opened.table)
    except BridgeError:
        return
    what = f"record of {table}"
    if right:
        yield Diagnostic(what, "ok", "Hive opens the table by it")
    else:
        yield Diagnostic(
            what,
            "error",
            "Hive cannot read the table: its record in the metastore names other classes or "
            "columns than skipbridge gives a table of segments now",
            f"skipbridge segment refresh {table}",
        )
