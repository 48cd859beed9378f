"""skipbridge: file-level data skipping for tables on object storage, for Spark, Trino and Hive.

The names of ``__all__`` are the public API; `docs/reference/python-api.md` describes them. All
other modules of this package are private: they change without notice.

A session opens tables, a table is scanned, and a scan reads only the files that may hold a row:

>>> import bridge
>>> with bridge.connect() as session:  # doctest: +SKIP
...     flights = session.table("./warehouse/flights")
...     flights.index.build()
...     flights.scan("dep_delay > 60", columns=["carrier"]).to_arrow()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.api.clustering import CancelledGroup, TableClustering
    from bridge.api.index import IndexBuild, TableIndex
    from bridge.api.scan import Scan
    from bridge.api.scan_report import ScanReport
    from bridge.api.session import Session, connect
    from bridge.api.table import Table
    from bridge.errors import BridgeError
    from bridge.jobs.sql.context import SqlResult

__version__ = "0.1.0"
__all__ = [
    "BridgeError",
    "CancelledGroup",
    "IndexBuild",
    "ScanReport",
    "Scan",
    "Session",
    "SqlResult",
    "Table",
    "TableClustering",
    "TableIndex",
    "__version__",
    "clustering",
    "connect",
]
_PLACES = {
    "BridgeError": "bridge.errors",
    "CancelledGroup": "bridge.api.clustering",
    "IndexBuild": "bridge.api.index",
    "ScanReport": "bridge.api.scan_report",
    "Scan": "bridge.api.scan",
    "Session": "bridge.api.session",
    "SqlResult": "bridge.jobs.sql.context",
    "Table": "bridge.api.table",
    "TableClustering": "bridge.api.clustering",
    "TableIndex": "bridge.api.index",
    "connect": "bridge.api.session",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: ``import bridge`` itself imports nothing."""
    place = _PLACES.get(name)
    if name == "clustering":
        return import_module("bridge.clustering")
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return __all__
