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

from bridge.kernel.version import VERSION

if TYPE_CHECKING:
    from bridge.app.api.clustering import TableClustering
    from bridge.app.api.index import IndexBuild, TableIndex
    from bridge.app.api.scan import Scan
    from bridge.app.api.scan_report import ScanReport
    from bridge.app.api.session import Session, connect
    from bridge.app.api.table import Table
    from bridge.clustering.write_check import CancelledGroup
    from bridge.kernel.errors import BridgeError
    from bridge.segments.statements.context import SqlResult

__version__ = VERSION
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
    "BridgeError": "bridge.kernel.errors",
    "CancelledGroup": "bridge.clustering.write_check",
    "IndexBuild": "bridge.app.api.index",
    "ScanReport": "bridge.app.api.scan_report",
    "Scan": "bridge.app.api.scan",
    "Session": "bridge.app.api.session",
    "SqlResult": "bridge.segments.statements.context",
    "Table": "bridge.app.api.table",
    "TableClustering": "bridge.app.api.clustering",
    "TableIndex": "bridge.app.api.index",
    "connect": "bridge.app.api.session",
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
