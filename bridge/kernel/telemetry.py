"""Metrics of a planner process, in the Prometheus client's registry.

Scan metrics have a table label. A process uses the names of the first `MOST_TABLES` tables that it
plans, and ``other`` for all further tables, so that the number of series stays bounded.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

# Otherwise each counter would have a second series with its creation time.
disable_created_metrics()  # type: ignore[no-untyped-call]

MOST_TABLES = 100
OTHER = "other"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

PLANS = Counter("skipbridge_plans", "Scans planned", ["engine", "table"])
PLAN_SECONDS = Histogram(
    "skipbridge_plan_seconds", "Time to open a plan", ["table"], buckets=_BUCKETS
)
FILES = Counter("skipbridge_files", "Files considered and kept", ["outcome", "table"])
SPLITS = Counter("skipbridge_splits", "Splits handed to engines", ["table"])
OPEN_PLANS = Gauge("skipbridge_open_plans", "Plans open now", multiprocess_mode="livesum")
QUEUED = Gauge(
    "skipbridge_queued", "Scans and requests that wait for their turn", multiprocess_mode="livesum"
)
ERRORS = Counter("skipbridge_errors", "Errors answered, by code", ["code"])
INDEX_IGNORED = Counter(
    "skipbridge_index_ignored", "Scans for which an index was not used", ["reason"]
)
METASTORE_CACHE = Counter(
    "skipbridge_metastore_cache",
    "What the planner took from its cache of the metastore, and what it asked for",
    ["kind", "outcome"],
)
STORAGE_REQUESTS = Counter(
    "skipbridge_storage_requests",
    "Requests to HDFS and object stores, without those that their clients repeat",
    ["operation"],
)
_tables: set[str] = set()


def table_label(table: str) -> str:
    """The label of a table: its name, or ``other`` once there are `MOST_TABLES`."""
    if table in _tables:
        return table
    if len(_tables) >= MOST_TABLES:
        return OTHER
    _tables.add(table)
    return table
