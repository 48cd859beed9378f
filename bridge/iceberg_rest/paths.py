"""Paths that a client does not cut short: it would read another file, and not this one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bridge.iceberg_rest.clients import Client
from bridge.kernel.errors import UnsupportedTable

_JAVA = re.compile(r"(?s)(?!(?:file|hdfs|viewfs):).*[#?]")
"""Hadoop reads all names; Iceberg's own file systems for stores take these for a URL's parts."""
_OTHERS = re.compile(r"(?s).*[#?\t\r\n]|hdfs:.*;")
"""PyIceberg takes all paths for URLs."""


def require_whole(client: Client, paths: Iterable[str]) -> None:
    """Errors: UnsupportedTable: the client would cut a path short."""
    cut = _JAVA if client is Client.JAVA else _OTHERS
    for path in filter(cut.match, paths):
        raise UnsupportedTable(
            f"the name of {path!r} has a character at which the client would cut it short, and "
            "read another file",
            "rename the file, or leave it out by a filter; or read the table with Trino or Hive",
        )
