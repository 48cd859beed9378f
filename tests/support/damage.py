"""Damaged files, and what is asked of them; run as a program, which a native crash may end.

``python -m tests.support.damage WHAT FIRST COUNT``: damages COUNT files, each from a generator
with a seed of its own, from FIRST on; writes a line before each and one about what came of it.
"""

from __future__ import annotations

import datetime as dt
import io
import random
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po
import pyarrow.parquet as pq

from bridge.formats.parquet import footer as parquet_footer
from bridge.formats.parquet.statistics import FooterReader
from bridge.formats.statistics import LeafStatistics
from bridge.index.building.collect import FileTask, Reading, collect_chunk
from bridge.index.kinds.registry import kinds
from bridge.kernel.errors import FileCorrupt
from bridge.storage.routed import open_storage

_MR = Path(__file__).parents[1] / "fixtures/parquet_mr"
_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"row_group_size": 15},
    {"write_page_index": True, "bloom_filter_options": {"i": True, "s": True}},
    {"store_schema": False, "compression": "zstd", "data_page_version": "2.0"},
    {"version": "1.0", "compression": "gzip", "use_dictionary": False, "row_group_size": 20},
    {"store_decimal_as_integer": True, "compression": "none", "data_page_size": 64},
    {"use_deprecated_int96_timestamps": True},
    {"write_page_checksum": True, "write_statistics": ["i", "s"]},
)
_FLAT = (
    "i", "l", "t", "u", "ul", "f", "d", "b", "s", "bin", "long", "dec", "wide", "dt", "ts", "fx",
    "st", "dotted.name", "none",
)  # fmt: skip


def _table(rows: int = 40) -> pa.Table:
    r = range(rows)
    day, micros = dt.date(2020, 1, 1), 1_700_000_000_000_000
    return pa.table(
        {
            "i": pa.array([None if i % 7 == 0 else i * 3 - 20 for i in r], pa.int32()),
            "l": [i * 10**9 for i in r],
            "t": pa.array([i % 100 - 20 for i in r], pa.int8()),
            "u": pa.array([i + 2**31 for i in r], pa.uint32()),
            "ul": pa.array([i + 2**62 for i in r], pa.uint64()),
            "f": pa.array([i / 7 for i in r], pa.float32()),
            "d": [None if i % 5 == 0 else i / 3 for i in r],
            "b": [i > 3 for i in r],
            "s": [f"text {i % 9} é" for i in r],
            "bin": [bytes([i % 256, 255 - i % 256]) for i in r],
            "long": ["x" * (i * 5) for i in r],
            "dec": pa.array([Decimal(i) / 4 for i in r], pa.decimal128(9, 2)),
            "wide": pa.array([Decimal(i) * 10**20 for i in r], pa.decimal128(38, 0)),
            "dt": [day + dt.timedelta(i) for i in r],
            "ts": pa.array([micros + i for i in r], pa.timestamp("us")),
            "tz": pa.array([micros // 1000 + i for i in r], pa.timestamp("ms", "UTC")),
            "ns": pa.array([(micros + i) * 1000 for i in r], pa.timestamp("ns")),
            "fx": pa.array([bytes([i % 256]) * 5 for i in r], pa.binary(5)),
            "st": [{"a": i, "b": str(i), "in": {"c": i / 2}} if i % 4 else None for i in r],
            "list": [[i, None] for i in r],
            "map": pa.array([[("k", i)] for i in r], pa.map_(pa.string(), pa.int32())),
            "dotted.name": list(r),
            "none": pa.nulls(rows, pa.string()),
        }
    )


@cache
def parquet_files() -> list[bytes]:
    """Whole files of several writers: pyarrow, DuckDB, parquet-mr."""
    whole = _table()
    found = []
    for table in (whole, whole.select(["i", "s", "d", "st"])):
        for options in _OPTIONS:
            sink = io.BytesIO()
            pq.write_table(table, sink, **options)
            found.append(sink.getvalue())
    flat = whole.select(_FLAT)
    with tempfile.TemporaryDirectory() as directory, duckdb.connect() as connection:
        connection.register("flat", flat)
        for options in ("", ", compression zstd", ", compression gzip"):
            path = Path(directory) / "f.parquet"
            connection.execute(f"COPY flat TO '{path}' (FORMAT parquet{options})")
            found.append(path.read_bytes())
    return found + [path.read_bytes() for path in sorted(_MR.glob("*.parquet"))]


@cache
def orc_files() -> list[bytes]:
    flat = _table(200).select([c for c in _FLAT if c not in ("u", "ul", "fx", "none")] + ["list"])
    found = []
    for compression in ("uncompressed", "zlib", "snappy", "zstd", "lz4"):
        for stripe in (64 * 1024 * 1024, 2000):
            sink = io.BytesIO()
            po.write_table(flat, sink, compression=compression, stripe_size=stripe, batch_size=64)
            found.append(sink.getvalue())
    return found


@dataclass(frozen=True)
class Damaged:
    """A damaged file; ``told`` if a footer without it would tell the same of it.

    No footer has a checksum: bounds whose own bytes changed, or whose data did, are lies that
    nobody can see, and that every engine believes. So is a column that was said to be optional
    and is said to be required: its data is decoded as something else.
    """

    raw: bytes
    told: bool


def _footer_at(raw: bytes) -> int:
    return len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")


@cache
def _statistics_at(raw: bytes) -> list[tuple[int, int]]:
    """Where a whole file's footer holds bounds and counts of NULL."""
    start = _footer_at(raw)
    found: list[tuple[int, int]] = []
    take = parquet_footer._matched

    def noting(match: Any) -> Any:
        spans = [match.span(group) for group in range(5, 12)]
        found.extend((start + a, start + b) for a, b in spans if a >= 0)
        return take(match)

    parquet_footer._matched = noting
    try:
        parquet_footer.Speller().read(raw[start:-8], "whole")
    finally:
        parquet_footer._matched = take
    longest = b"x" * 195  # long ones are not spelt as others are, nor found above
    at = raw.find(longest, start)
    while at >= 0:
        found.append((at - 8, at + len(longest) + 8))
        at = raw.find(longest, at + 1)
    return found


def damaged_parquet(rng: random.Random, *, data: bool) -> Damaged:
    """One of the files: cut, spliced with another one, or with some bytes changed.

    Args:
        data: anywhere in the file; else mostly in the footer.
    """
    raw = rng.choice(parquet_files())
    whole = bytearray(raw)
    low = 4 if data else _footer_at(raw)
    way = rng.random()
    changed: list[tuple[int, int]] = []
    if way < 0.05:
        return Damaged(raw[: rng.randrange(len(raw))], told=False)
    if way < 0.1:  # the footer of another file
        other = rng.choice(parquet_files())
        return Damaged(raw[: _footer_at(raw)] + other[_footer_at(other) :], told=False)
    if way < 0.15:  # a piece of another footer
        other = rng.choice(parquet_files())
        at, count = rng.randrange(low, len(raw) - 8), rng.randint(1, 60)
        begin = rng.randrange(_footer_at(other), len(other) - 8)
        piece = other[begin : begin + count][: len(raw) - at]
        whole[at : at + len(piece)] = piece
        changed.append((at, at + len(piece)))
    elif way < 0.25:  # bytes lost or too many, and a length that is right
        at = rng.randrange(_footer_at(raw), len(raw) - 8)
        count = rng.randint(1, 4)
        lost = rng.random() < 0.5
        whole[at : at + count if lost else at] = b"" if lost else rng.randbytes(count)
        whole[-8:-4] = (len(whole) - 8 - _footer_at(raw)).to_bytes(4, "little")
        changed.append((at - 1, at + count))
    else:
        for _ in range(rng.choice((1, 1, rng.randint(1, 8)))):
            at = rng.randrange(low if rng.random() < 0.95 else 0, len(raw))
            whole[at] = (
                rng.randrange(256) if rng.random() < 0.6 else raw[at] ^ 1 << rng.randrange(8)
            )
            changed.append((at, at + 1))
    told = all(
        begin >= _footer_at(raw) and not any(begin < b and end > a for a, b in _statistics_at(raw))
        for begin, end in changed
    )
    return Damaged(bytes(whole), told and _required(bytes(whole)) == _required(raw))


def _required(raw: bytes) -> list[bool]:
    try:
        schema = parquet_footer.Speller().read(raw[_footer_at(raw) : -8], "").schema
    except FileCorrupt:
        return []
    return [leaf.required for leaf in schema.leaves]


def damaged_orc(rng: random.Random) -> bytes:
    whole = bytearray(rng.choice(orc_files()))
    if rng.random() < 0.15:
        return bytes(whole[: rng.randrange(len(whole))])
    low = 0 if rng.random() < 0.5 else max(0, len(whole) - 400)
    for _ in range(rng.randint(1, 8)):
        whole[rng.randrange(low, len(whole))] = rng.randrange(256)
    return bytes(whole)


def wrong_bounds(leaves: Iterable[LeafStatistics], rows: int, raw: bytes) -> list[Any] | None:
    """What does not hold of the rows that pyarrow reads; None where it reads none."""
    try:
        table = pq.read_table(pa.BufferReader(raw), use_threads=False)
    except Exception:
        return None
    if table.num_rows != rows:
        return [("rows", rows, table.num_rows)]
    return [problem for leaf in leaves if (problem := _wrong(leaf, table))]


def _wrong(leaf: LeafStatistics, table: pa.Table) -> Any:
    stored = leaf.column.type
    if leaf.lower is None and leaf.nulls is None:
        return None
    try:
        values = table.column(leaf.column.path[0])
        for name in leaf.column.path[1:]:
            values = pc.struct_field(values, name)
    except (pa.ArrowException, KeyError) as error:
        return leaf.column.path, str(error)
    if leaf.nulls not in (None, values.null_count):
        return leaf.column.path, "nulls", leaf.nulls, values.null_count
    if leaf.lower is None or values.null_count == len(values):
        return None
    if stored.holds == "bytes":
        values = values.cast(pa.large_binary())
    elif stored.logical in ("timestamp", "date"):
        values = values.cast(pa.int64() if stored.logical == "timestamp" else pa.int32())
    found = pc.min_max(values).as_py()
    lower, upper = (_as_read(leaf, bound) for bound in (leaf.lower, leaf.upper))
    if lower > found["min"] or upper < found["max"]:
        return leaf.column.path, lower, upper, found
    return None


def _as_read(leaf: LeafStatistics, bound: Any) -> Any:
    stored = leaf.column.type
    if stored.logical == "decimal":
        if isinstance(bound, bytes):
            bound = int.from_bytes(bound, "big", signed=True)
        digits = tuple(int(d) for d in str(abs(bound)))
        return Decimal((int(bound < 0), digits, -stored.scale))
    if stored.logical == "uint":
        return bound & (2**64 - 1 if stored.physical == "INT64" else 2**32 - 1)
    return bound


def _footer(seed: int) -> str:
    damaged = damaged_parquet(random.Random(seed), data=False)
    raw = damaged.raw
    try:
        footer = FooterReader().read(raw, len(raw), "f")
    except FileCorrupt:
        return "corrupt"
    wrong = wrong_bounds(footer.leaves, footer.rows, raw)
    if wrong is None:
        return "unreadable"
    if wrong and damaged.told:
        return f"WRONG {wrong[0]}"
    return "lie" if wrong else "right"


_ON = ("i", "s", "d", "st.a", "ts", "dec")


def _collected(format: str, make: Callable[[int], bytes]) -> Callable[[int], str]:
    directory = Path(tempfile.mkdtemp(prefix="skipbridge-damage-"))
    storage = open_storage()
    path = directory / "f"
    definitions = [(k, k.define(on)) for on in _ON for k in (kinds()["values"], kinds()["bloom"])]
    reading = Reading("scan", tuple(definitions) if format == "parquet" else ())

    def ask(seed: int) -> str:
        path.write_bytes(make(seed))
        found = storage.stat(f"file://{path}")
        assert found is not None
        task = FileTask(0, f"file://{path}", found.size, found.modified, format=format)
        collected = collect_chunk([task], storage, reading)
        collected.to_bytes()
        problem = collected.files["problem"][0].as_py()
        return "right" if problem is None else "corrupt" if "CORRUPT" in problem else problem

    return ask


def asker(what: str) -> Callable[[int], str]:
    match what:
        case "footer":
            return _footer
        case "data":
            return _collected(
                "parquet", lambda seed: damaged_parquet(random.Random(seed), data=True).raw
            )
    return _collected("orc", lambda seed: damaged_orc(random.Random(seed)))


def main() -> None:
    what, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ask = asker(what)
    for seed in range(first, first + count):
        print(seed, end=" ", flush=True)
        try:
            print(ask(seed).replace("\n", " "), flush=True)
        except BaseException as error:
            print(f"RAISED {error!r}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
