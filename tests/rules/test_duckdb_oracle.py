"""What DuckDB reads from the same footers: bounds and counts must agree, or ours say less."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.formats.parquet.statistics import FooterReader
from bridge.formats.physical_column import decode, encode
from bridge.formats.statistics import LeafStatistics
from tests.support.arrow import arrow_table

from tests.support.strategies import TYPES, table  # isort: skip


def _ours(leaf: LeafStatistics, bound: Any, *, upper: bool) -> Any:
    """A bound as the index keeps and decodes it; None where it is unknown."""
    stored = leaf.column.type
    if bound is None or stored.holds == "none":
        return None
    found = decode(stored, encode(stored.physical, [bound]), upper=upper)
    if not found.known[0]:
        return None
    value = found.values[0]
    return value.as_py() if isinstance(value, pa.Scalar) else value.item()


def _asked(query: str, text: str) -> int:
    ((value,),) = duckdb.execute(query, [text]).fetchall()
    return int(value)


def _theirs(leaf: LeafStatistics, text: str) -> Any:
    """DuckDB's text of a bound as the same kind of value."""
    stored = leaf.column.type
    match stored.logical:
        case "bool":
            return int(text == "true")
        case "int" | "uint":
            return int(text)
        case "float":
            return float(np.float32(text))  # the shortest text of a float, not of a double
        case "double":
            return float(text)
        case "date":
            return _asked("SELECT datediff('day', DATE '1970-01-01', ?::DATE)", text)
        case "timestamp":
            return _asked("SELECT epoch_us(?::TIMESTAMP)", text.removesuffix("+00"))
        case "decimal":
            value = Decimal(text)
            return value if stored.holds == "wide" else int(value.scaleb(stored.scale))
        case "string":
            return text.encode()
    raise AssertionError(stored)


def _agree(path: Path, seen: Counter[str]) -> None:
    raw = path.read_bytes()
    leaves = {
        ".".join(leaf.column.path): leaf for leaf in FooterReader().read(raw, len(raw), "f").leaves
    }
    rows = duckdb.execute(
        "SELECT path_in_schema, stats_min_value, stats_max_value, stats_null_count, num_values "
        "FROM parquet_metadata(?) WHERE row_group_num_rows > 0",
        [str(path)],
    ).fetchall()
    chunks: dict[str, list[Any]] = {}
    for name, *rest in rows:
        chunks.setdefault(name.replace(", ", "."), []).append(rest)
    assert set(chunks) == set(leaves) or not rows
    for name, groups in chunks.items():
        leaf = leaves[name]
        counts = [group[2] for group in groups]
        if leaf.nulls is not None:
            assert leaf.nulls == sum(counts), name
            seen["counts"] += 1
        if leaf.column.type.logical == "binary":
            continue  # its text is escaped
        full = [g for g in groups if g[2] != g[3]]  # not all NULL
        for upper, bound in ((False, leaf.lower), (True, leaf.upper)):
            mine = _ours(leaf, bound, upper=upper)
            if mine is None:
                continue
            texts = [g[1 if upper else 0] for g in full]
            if leaf.column.type.is_floating and None in texts:
                continue  # DuckDB takes no infinite bound
            assert None not in texts, name
            values = [_theirs(leaf, text) for text in texts]
            assert mine == (max if upper else min)(values), (name, leaf.column.type)
            seen["bounds"] += 1


@pytest.mark.rule("4")
@pytest.mark.rule("10")
@pytest.mark.rule("13")
def test_random_tables(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    rng = random.Random(11)
    for number in range(150):
        kinds = tuple(rng.choice(TYPES) for _ in range(4))
        data = table(rng, kinds, 1)
        path = tmp_path / f"{number}"
        pq.write_table(
            arrow_table(data, data.files[0]),
            path,
            row_group_size=rng.choice((1, 2, 100)),
            store_decimal_as_integer=rng.random() < 0.5,
        )
        _agree(path, seen)
    assert seen["bounds"] > 300 and seen["counts"] > 300, seen


@pytest.mark.rule("17")
def test_bloom_filters_that_pyarrow_wrote(tmp_path: Path) -> None:
    """DuckDB skips by them by where the value is not there: the bytes mean what they should."""
    values = np.arange(0, 4000, 2)
    path = tmp_path / "a"
    pq.write_table(
        pa.table({"x": pa.array(values, pa.int64()), "i": pa.array(values, pa.int32())}),
        path,
        bloom_filter_options={"x": {"ndv": 4000, "fpp": 0.01}, "i": {"ndv": 4000, "fpp": 0.01}},
    )

    def excluded(column: str, value: int) -> bool:
        found = duckdb.execute(
            "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, ?, ?)",
            [str(path), column, value],
        ).fetchall()
        return all(excludes for (excludes,) in found)

    for column in ("x", "i"):
        assert not any(excluded(column, int(v)) for v in values[:200])
        assert sum(excluded(column, int(v) + 1) for v in values[:200]) > 150
