"""Where rows of Hudi tables differ from Spark's by intent, and what is refused by name."""

from __future__ import annotations

UNLIKE_SPARK = {
    "cow_odd_values": "Spark takes the value k=v for Hive's style and shows v",
    "cow_odd_values_hive": "Spark unescapes 50%25, though values are not escaped there",
    "cow_widened": "Spark widens a float by its shortest text (0.2), Parquet readers exactly",
    "mor_widened": "as cow_widened",
}
NOT_MERGED = {
    "mor_payload_non_defaults": "partial updates",
    "mor_payload_partial": "partial updates",
}
"""Refused by the Python API, which merges whole records alone."""
NOT_DEFINED = {"cow_first_commit_lost": "no commit tells the columns"}
"""Refused without a metastore."""
RETYPED = {"cow_retyped": "a double became a decimal, which no reader of Parquet converts"}
REFUSED = {**NOT_MERGED, **NOT_DEFINED, **RETYPED}
