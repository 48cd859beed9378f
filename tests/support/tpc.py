"""TPC-H and TPC-DS for Trino: published query texts, tables by its own generators, equal rows."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from bridge.servers.maven import artifact_file, parse_artifact

# The newest artifact on Maven Central that has the texts; they are not copied into this project.
_TEXTS = parse_artifact("io.prestosql:presto-benchto-benchmarks:350")
_RELATIVE = 1e-6
SALES = {"store_sales": "ss", "catalog_sales": "cs", "web_sales": "ws"}
"""The tables that layouts partition, with the prefix of their columns."""
TABLES = {
    "tpcds": (
        *SALES,
        "store_returns",
        "catalog_returns",
        "web_returns",
        "inventory",
        "call_center",
        "catalog_page",
        "customer",
        "customer_address",
        "customer_demographics",
        "date_dim",
        "household_demographics",
        "income_band",
        "item",
        "promotion",
        "reason",
        "ship_mode",
        "store",
        "time_dim",
        "warehouse",
        "web_page",
        "web_site",
    ),
    "tpch": (
        "lineitem",
        "orders",
        "partsupp",
        "part",
        "customer",
        "supplier",
        "nation",
        "region",
    ),
}
"""All tables but dbgen_version, whose time of day Hive has no type for."""


@cache
def texts(benchmark: str) -> dict[str, str]:
    """Texts of ``tpcds`` or ``tpch`` by query, such as q01; `in_schema` completes them.

    Errors:
        EnvironmentMissing, ArtifactUnavailable: no Maven, or the download failed.
    """
    with zipfile.ZipFile(artifact_file(_TEXTS)) as jar:
        names = sorted(
            n for n in jar.namelist() if re.fullmatch(rf"sql/presto/{benchmark}/q\d+\.sql", n)
        )
        return {
            n.rpartition("/")[2].removesuffix(".sql"): jar.read(n).decode().strip().rstrip(";")
            for n in names
        }


def in_schema(text: str, catalog: str, schema: str) -> str:
    """The statement over the tables of one catalog's schema."""
    # The texts also have the placeholders in names and values that are no tables.
    text = re.sub(r"(?<=['\"])\$\{database\}\.\$\{schema\}\.", "", text)
    for name, value in (("database", catalog), ("schema", schema), ("prefix", "")):
        text = text.replace(f"${{{name}}}", value)
    return text


def difference(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    """How two results differ as multisets; empty if they do not.

    Doubles are equal within a millionth, because sums of them depend on the order of rows.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, not {len(theirs)}"
    for a, b in zip(sorted(ours, key=_order), sorted(theirs, key=_order), strict=True):
        if not all(_same(x, y) for x, y in zip(a, b, strict=True)):
            return f"{a} is not {b}"
    return ""


def _order(row: Sequence[Any]) -> tuple[str, ...]:
    # Exact values first: doubles that differ by rounding would sort rows in another order.
    exact = [str(v) for v in row if not isinstance(v, float)]
    return (*exact, *(f"{v:.5e}" for v in row if isinstance(v, float)))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float | Decimal) and isinstance(b, float | Decimal):
        x, y = float(a), float(b)
        return x == y or abs(x - y) <= _RELATIVE * max(abs(x), abs(y)) or (x != x and y != y)
    return bool(a == b)


def by_date(table: str, source: str, columns: Sequence[str]) -> tuple[str, str]:
    """Partition key and SELECT of a sales table partitioned by the day of sale."""
    key = f"{SALES[table]}_sold_date_sk"
    others = ", ".join(c for c in columns if c != key)
    return key, f"SELECT {others}, {key} FROM {source}.{table}"


def by_month(table: str, source: str, columns: Sequence[str]) -> tuple[str, str]:
    """The same partitioned by the month of sale (yyyymm), the date staying in the files."""
    prefix = SALES[table]
    named = ", ".join(f"s.{c}" for c in columns)
    return f"{prefix}_sold_month", (
        f"SELECT {named}, d_year * 100 + d_moy AS {prefix}_sold_month FROM {source}.{table} s "
        f"LEFT JOIN {source}.date_dim ON {prefix}_sold_date_sk = d_date_sk"
    )


def day_ranges(
    table: str, run: Callable[[str], list[Any]], source: str, days: int
) -> Iterator[str]:
    """Conditions that cut a sales table into pieces of so many days, and rows without a date."""
    key = f"{SALES[table]}_sold_date_sk"
    ((low, high),) = run(f"SELECT min({key}), max({key}) FROM {source}.{table}")
    for first in range(low, high + 1, days):
        yield f"{key} BETWEEN {first} AND {first + days - 1}"
    yield f"{key} IS NULL"


def month_slices(table: str, files: int) -> Iterator[str]:
    """Conditions that cut each month into so many pieces, each of a day or two, as loads would."""
    prefix = SALES[table]
    for n in range(files):
        yield f"coalesce((d_dom - 1) * {files} / 31, {prefix}_item_sk % {files}) = {n}"
