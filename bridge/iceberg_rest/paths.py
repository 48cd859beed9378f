"""Paths that a client does not cut short: it would read another file, and not this one."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.iceberg_rest.clients import Client
from bridge.kernel.errors import UnsupportedTable

_HADOOP = ("file:", "hdfs:", "viewfs:")
"""Java reads these through Hadoop, which takes all names as they are."""


def require_whole(client: Client, paths: Sequence[str]) -> None:
    """Errors: UnsupportedTable: the client would cut a path short."""
    every = "\0".join(paths)  # one look at all is hundreds of times as fast as one at each
    if not any(mark in every for mark in "#?;\t\r\n"):
        return
    for path in paths:
        if _is_cut(client, path):
            raise UnsupportedTable(
                f"the name of {path!r} has a character at which the client would cut it short, and "
                "read another file",
                "rename the file, or leave it out by a filter; or read the table with Trino or "
                "Hive",
            )


def _is_cut(client: Client, path: str) -> bool:
    """Iceberg's own file systems for stores take a path for a URL; PyIceberg does so everywhere."""
    if client is Client.JAVA:
        marks = "" if path.startswith(_HADOOP) else "#?"
    else:
        marks = "#?;\t\r\n" if path.startswith("hdfs:") else "#?\t\r\n"
    return any(mark in path for mark in marks)
