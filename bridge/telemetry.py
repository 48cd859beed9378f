"""Metrics of a planner process, in the Prometheus client's registry."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

PLANS = Counter("skipbridge_plans", "Scans planned", ["engine"])
PLAN_SECONDS = Histogram(
    "skipbridge_plan_seconds", "From a plan's opening to its last file", buckets=_BUCKETS
)
FILES = Counter("skipbridge_files", "Files considered and kept", ["outcome"])
SPLITS = Counter("skipbridge_splits", "Splits handed to engines")
OPEN_PLANS = Gauge("skipbridge_open_plans", "Plans open now", multiprocess_mode="livesum")
ERRORS = Counter("skipbridge_errors", "Errors answered, by code", ["code"])
INDEX_IGNORED = Counter(
    "skipbridge_index_ignored", "Scans for which an index was not used", ["reason"]
)
METASTORE_CACHE = Counter(
    "skipbridge_metastore_cache",
    "What the planner took from its cache of the metastore, and what it asked for",
    ["kind", "outcome"],
)
